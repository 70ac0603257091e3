"""``python -m dpviz``."""

import sys


def start() -> int:
    """Run the command line; an interrupt while it loads is one too."""
    try:
        from dpviz.cli import main
    except KeyboardInterrupt:
        print("dpviz: interrupted", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(start())
