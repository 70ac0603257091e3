"""Sentences of the Trade-offs page."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dpviz.core.number_text import numeral
from dpviz.mechanisms import Mechanism
from dpviz.metrics import METRICS


def curve_caption(
    bands: pd.DataFrame,
    best: pd.DataFrame,
    axis: str,
    metric: str,
    mechanisms: Sequence[Mechanism],
) -> str:
    """Return which variant is best along an axis, and where that changes."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    name = METRICS[metric].label
    if bands.empty:
        return f"None of the chosen mechanisms has a {name}."
    if best.empty:
        return f"Mean {name} along {axis}: nowhere do these draws single out one mechanism."
    runs: list[tuple[str, float]] = []
    for mechanism, x in zip(best["mechanism"], best["x"], strict=True):
        if not runs or runs[-1][0] != mechanism:
            runs.append((str(mechanism), float(x)))
    if len(runs) == 1:
        return (
            f"Among claims that hold, {labels[runs[0][0]]} has the best {name} wherever draws "
            "can tell."
        )
    words = [f"{labels[mechanism]} from {axis} {numeral(x, 3)}" for mechanism, x in runs]
    return f"Best {name} among claims that hold: {', '.join(words)}."


def row_bound_caption(bands: pd.DataFrame, mechanisms: Sequence[Mechanism]) -> str:
    """Return what clipping harder gains and costs."""
    labels = {mechanism.text: mechanism.label for mechanism in mechanisms}
    parts = []
    for mechanism, table in bands.groupby("mechanism", sort=False):
        top = table.iloc[int(table["mean"].to_numpy().argmax())]
        last = table.iloc[int(table["x"].to_numpy().argmax())]
        if str(mechanism) in labels and top["x"] < last["x"]:
            parts.append(
                f"{labels[str(mechanism)]} does best at R = {numeral(top['x'], 3)} "
                f"({numeral(top['mean'], 3)} "
                f"against {numeral(last['mean'], 3)} at the largest norm)"
            )
    start = (
        "A smaller bound scales long rows down, which loses signal (bias), and lowers the noise by "
        "its square. "
    )
    if not parts:
        return start + "Here no mechanism gains from clipping harder than the largest norm."
    return start + "; ".join(parts) + ". Choosing the bound by this curve uses the data."
