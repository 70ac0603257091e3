"""``python -m dpviz``."""

import codecs
import gc
import io
import os
import signal
import sys
from types import FrameType


def start() -> int:
    """Run the command line; an interrupt while it loads ends it at once."""
    if sys.stderr is None:  # closed: what is said there would go to stdout, into a JSON or a CSV
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, to the end
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        codecs.register_error("dpviz", _stand_in)
        sys.stdout.reconfigure(errors="dpviz")
    # Raised inside a compiled module that is being loaded, KeyboardInterrupt would come out as an
    # ImportError.
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if default:
        signal.signal(signal.SIGINT, _interrupted)
    gc.disable()  # what is imported stays, and a look for garbage would go through it again
    from dpviz.core.errors import DpvizError
    from dpviz.core.plugins import with_plugins

    try:
        # before any room is loaded: a plugin may bring what is listed there
        sys.argv[1:] = with_plugins(sys.argv[1:])
        from dpviz.cli import load, main

        load(sys.argv[1:])
    except DpvizError as error:
        print(f"dpviz: {error}", file=sys.stderr)
        return 2

    gc.freeze()
    gc.enable()
    if default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


_PLAIN = {"\u00b7": ".", "\u2713": "+", "\u2717": "x", "\u2248": "~", "\u2298": "-"}


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    """Return what a plain terminal (LANG=C) is told of letters that it lacks, and where they end.

    A blank for a blank, # for a bar, and of a letter without likeness its number, as on stderr.
    """
    assert isinstance(error, UnicodeEncodeError)
    said = [
        " " if letter.isspace()
        else "#" if "\u2580" <= letter <= "\u259f"
        else _PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode()
        for letter in error.object[error.start : error.end]
    ]  # fmt: skip
    return "".join(said), error.end


def _interrupted(number: int, frame: FrameType | None) -> None:
    os.write(2, b"dpviz: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(start())
