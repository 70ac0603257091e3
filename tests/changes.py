"""Find the files that a change touches, according to git."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def base(root: Path = ROOT) -> str | None:
    """Return a change's base commit: its fork from main or, on main, the commit before the last.

    The result is None if git cannot tell.
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
    """Return the files that differ from a change's base commit.

    Returns
    -------
    set of str
        Paths below the root, including deleted files; None if git cannot tell.
    """
    start = base(root)
    return None if start is None else _listed(root, start)


def _listed(root: Path, base: str) -> set[str]:
    files = _git(root, "diff", "--name-only", "--no-renames", base) or ""
    new = _git(root, "ls-files", "--others", "--exclude-standard") or ""
    return {*files.splitlines(), *new.splitlines()}


def _git(root: Path, *words: str) -> str | None:
    try:
        process = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return process.stdout.strip() if process.returncode == 0 else None
