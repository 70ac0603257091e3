"""``python -m dpviz``."""

import codecs
import gc
import io
import os
import signal
import sys
from types import FrameType


def start() -> int:
    """Run the command line; an interrupt during loading ends the process at once."""
    if sys.stderr is None:  # With stderr closed, messages would go to stdout, into JSON or CSV.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, to the end
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        codecs.register_error("dpviz", _stand_in)
        sys.stdout.reconfigure(errors="dpviz")
    # In the import of a compiled module, Ctrl-C would raise ImportError, so handle Ctrl-C here.
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if default:
        signal.signal(signal.SIGINT, _interrupted)
    gc.disable()  # Garbage collection only slows loading, as imported objects stay in memory.
    from dpviz.core.errors import DpvizError
    from dpviz.core.plugins import with_plugins

    try:
        # Load plugins first, because they may extend the lists of modules that load later.
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
    """Return ASCII for letters that a plain terminal (LANG=C) lacks, and where they end.

    A blank replaces a blank and # a bar. Letters without a substitute become their escape code, as
    on stderr.
    """
    assert isinstance(error, UnicodeEncodeError)
    letters = [
        " " if letter.isspace()
        else "#" if "\u2580" <= letter <= "\u259f"
        else _PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode()
        for letter in error.object[error.start : error.end]
    ]  # fmt: skip
    return "".join(letters), error.end


def _interrupted(number: int, frame: FrameType | None) -> None:
    os.write(2, b"dpviz: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(start())
