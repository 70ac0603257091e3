"""Which files a change touches, as git tells."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def base(root: Path = ROOT) -> str | None:
    """Return the commit that a change starts from: the main branch's, or on it the last but one.

    None if git cannot tell.
    """
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return None
    bases = (
        _git(root, "merge-base", "HEAD", name) for name in ("origin/HEAD", "origin/main", "main")
    )
    start = next((one for one in bases if one is not None), head)
    return start if _listed(root, start) else _git(root, "rev-parse", "HEAD~1")


def changed(root: Path = ROOT) -> set[str] | None:
    """Return the files that differ from the commit that a change starts from.

    Returns
    -------
    set of str
        Paths below the root, of deleted files too; None if git cannot tell.
    """
    start = base(root)
    return None if start is None else _listed(root, start)


def _listed(root: Path, base: str) -> set[str]:
    tracked = _git(root, "diff", "--name-only", "--no-renames", base) or ""
    new = _git(root, "ls-files", "--others", "--exclude-standard") or ""
    return {*tracked.splitlines(), *new.splitlines()}


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
