"""Compare all kept answers, or write them again: ``python -m tests.answers [--update] [NAME ...]``.

It says how many changed. Read the difference (``git diff tests/answers/kept``) before it is
committed: these files are the promise that a restructure changes nothing a user gets.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path

from tests.answers.kept import FOLDER, NAMES, made_by, text_of


def main() -> int:
    """Write or compare; the status is 1 where something differs and nothing was written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write what has changed")
    parser.add_argument("names", nargs="*", help="parts of names; all answers if none is given")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)  # Streamlit's word that no browser is there
    chosen = [name for name in NAMES if not asked.names or any(n in name for n in asked.names)]
    os.environ.pop("DPVIZ_DATA", None)  # which tables are there would be in the answers
    changed = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_CACHE_HOME": folder, "DPVIZ_LEDGERS": str(Path(folder) / "ledgers")}
        texts = {name: text_of(name) for name in chosen}
    if not asked.names:
        texts["versions"] = made_by()
        changed += [path.stem for path in FOLDER.glob("*.txt") if path.stem not in texts]
    for name, text in texts.items():
        path = FOLDER / f"{name}.txt"
        if not path.exists() or path.read_text("utf-8") != text:
            changed.append(name)
            if asked.update:
                path.write_text(text, encoding="utf-8")
    for name in changed if asked.update else ():
        if name not in texts:
            (FOLDER / f"{name}.txt").unlink()
    print(f"{len(changed)} of {len(texts)} changed{': ' if changed else ''}{', '.join(changed)}")
    return int(bool(changed) and not asked.update)


if __name__ == "__main__":
    raise SystemExit(main())
