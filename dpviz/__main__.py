"""``python -m dpviz``."""

import os
import signal
import sys
from types import FrameType


def start() -> int:
    """Run the command line; an interrupt while it loads ends it at once."""
    # Raised inside a compiled module that is being loaded, KeyboardInterrupt would come out as an
    # ImportError.
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if default:
        signal.signal(signal.SIGINT, _interrupted)
    from dpviz.core.errors import DpvizError
    from dpviz.core.plugins import with_plugins

    try:
        # before any room is loaded: a plugin may bring what is listed there
        sys.argv[1:] = with_plugins(sys.argv[1:])
        from dpviz.cli import main
    except DpvizError as error:
        print(f"dpviz: {error}", file=sys.stderr)
        return 2

    if default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


def _interrupted(number: int, frame: FrameType | None) -> None:
    os.write(2, b"dpviz: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(start())
