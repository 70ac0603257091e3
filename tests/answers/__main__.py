"""Compare all stored answers or rewrite them: ``python -m tests.answers [--update] [NAME ...]``.

The command prints how many answers changed. Read the difference (``git diff tests/answers/kept``)
before you commit it, because refactoring must not change anything a user gets.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path

from tests.answers.kept import FOLDER, NAMES, made_by, text_of


def main() -> int:
    """Write or compare the answers; return 1 if some answers differ and none were written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write what has changed")
    parser.add_argument("names", nargs="*", help="parts of names; all answers if none is given")
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # Without a browser, Streamlit would log warnings.
    names = [name for name in NAMES if not args.names or any(n in name for n in args.names)]
    os.environ.pop("DPVIZ_DATA", None)  # Otherwise the answers would list this machine's tables.
    changes = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_CACHE_HOME": folder, "DPVIZ_LEDGERS": str(Path(folder) / "ledgers")}
        texts = {name: text_of(name) for name in names}
    if not args.names:
        texts["versions"] = made_by()
        changes += [path.stem for path in FOLDER.glob("*.txt") if path.stem not in texts]
    for name, text in texts.items():
        path = FOLDER / f"{name}.txt"
        if not path.exists() or path.read_text("utf-8") != text:
            changes.append(name)
            if args.update:
                path.write_text(text, encoding="utf-8")
    for name in changes if args.update else ():
        if name not in texts:
            (FOLDER / f"{name}.txt").unlink()
    print(f"{len(changes)} of {len(texts)} changed{': ' if changes else ''}{', '.join(changes)}")
    return int(bool(changes) and not args.update)


if __name__ == "__main__":
    raise SystemExit(main())
