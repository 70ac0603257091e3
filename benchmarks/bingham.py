"""Test whether two public libraries sample the Bingham vector from its law.

diffprivlib and OpenDP, in the versions of `benchmarks.libraries`, are installed into environments
of their own. Each library returns one eigenvector whose law is known: density exp(8 u_1^2) on the
sphere.

Run ``python -m benchmarks.bingham``: it prints the figures beside the exact values. It writes the
libraries' figures, with versions and date, to dpviz/auditing/bingham.json, where the Claims page
reads them. ``--environments FOLDER`` keeps the environments for the next run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
from pathlib import Path

from benchmarks.libraries import VERSIONS, python_of
from benchmarks.peers_cells import known_law
from dpviz.auditing.finds import PEERS_FILE, bingham_moment, sampler_table, sharper_moment

NAMES = {"diffprivlib": "diffprivlib", "opendp": "OpenDP"}


def measured(folder: Path) -> list[dict[str, object]]:
    """Return one record for each library."""
    rows = []
    for peer, label in NAMES.items():
        law = known_law(peer, python_of(peer, folder))
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        rows.append({"library": label, "version": VERSIONS[peer], **law, "date": date})
    return rows


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--environments", type=Path, help="folder to keep the environments in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        rows = measured(options.environments or Path(passing))
    PEERS_FILE.write_text(json.dumps({"peers": rows}, indent=2) + "\n", encoding="utf-8")
    print(f"exact {bingham_moment():.4f}, by their acceptance test {sharper_moment():.4f}")
    print(sampler_table(0).to_string(index=False))


if __name__ == "__main__":
    main()
