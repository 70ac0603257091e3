"""Write the lock files: ``python -m tools.lock``, or ``make lock``.

The ranges stay in requirements.txt and pyproject.toml; the locks pin today's versions within the
ranges, with the hashes of every file for every platform and Python that dpviz supports. uv
resolves, because it can do so for all platforms at once; it has no other use.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {
    "requirements.lock": ("pyproject.toml", "--extra", "release"),
    "requirements-dev.lock": ("--group", "dev"),  # This locks the tools of make test.
}
_OPTIONS = (
    "--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate", "--no-header",
    "--no-emit-index-url", "--no-emit-find-links", "--upgrade", "--quiet",
)  # fmt: skip


def main() -> int:
    """Write both lock files; return the exit status of the first failure, otherwise 0."""
    for name, more in LOCKS.items():
        command = [sys.executable, "-m", "uv", "pip", "compile", "requirements.txt", *more]
        status = subprocess.run([*command, *_OPTIONS, "-o", name], cwd=ROOT, check=False).returncode
        if status:
            return status
        print(f"{name}: {(ROOT / name).read_text(encoding='utf-8').count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
