"""The example upload in ``data/``: synthetic, so that it may be shared freely.

``python -m tools.example FILE`` writes the example again, byte for byte.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpviz.core.seeding import generator

ROWS = 120
COLUMNS = ("mass_g", "diameter_mm", "firmness_n", "sugar_brix", "acidity_ph", "variety")
VARIETIES = ("amber", "coral", "russet")
# These cells (row, column) are empty, to show how missing values are treated.
MISSING = ((16, 2), (57, 3), (101, 2))


def example_csv() -> str:
    """Return the example table as CSV text: 120 synthetic fruit of three varieties.

    One latent size determines mass and diameter; one latent ripeness determines firmness, sugar and
    acidity. The varieties shift both latent values.
    """
    rng = generator(0, "datasets", "example")
    variety = rng.permutation(ROWS) % len(VARIETIES)
    size = rng.standard_normal(ROWS) + 1.5 * (variety - 1)
    ripeness = rng.standard_normal(ROWS) + 1.2 * (variety == 1)
    noise = rng.standard_normal((ROWS, 5))
    features = (
        (182 + 24 * size + 6 * noise[:, 0], 1),
        (72 + 3.4 * size + 0.8 * noise[:, 1], 1),
        (61 - 7 * ripeness + 3 * noise[:, 2], 1),
        (12.4 + 1.1 * ripeness + 0.4 * noise[:, 3], 2),
        (3.6 + 0.12 * ripeness + 0.05 * noise[:, 4], 3),
    )
    lines = [",".join(COLUMNS)]
    for i in range(ROWS):
        cells = [
            "" if (i, j) in MISSING else f"{column[i]:.{digits}f}"
            for j, (column, digits) in enumerate(features)
        ]
        lines.append(",".join([*cells, VARIETIES[variety[i]]]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(example_csv(), encoding="utf-8", newline="\n")
