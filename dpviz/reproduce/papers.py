"""The four papers: what a reader should take away of each, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper and what was found of it.

    Attributes
    ----------
    name : str
        As in `Info.paper`.
    title : str
    sentence : str
    """

    name: str
    title: str
    sentence: str


PAPERS = {
    paper.name: paper
    for paper in (
        Paper(
            "Jiang, Xie and Zhang 2016",
            "Wishart Mechanism for Differentially Private Principal Components Analysis",
            "Its bounds hold, most of them loosely, and Wishart noise is indeed smaller than "
            "Laplace noise; but the central claim, pure privacy, is false, because noise that is "
            "always positive moves the set of possible releases with the data.",
        ),
        Paper(
            "Chaudhuri, Sarwate and Sinha 2012",
            "Near-optimal Differentially Private Principal Components",
            "Its guarantees and the orders in its figures are found again on the data at hand, "
            "PPCA above MOD-SULQ, which needs d^1.5 people where PPCA needs d; so is the order of "
            "its SVM accuracies, but none of the four that could be redone is met as a number.",
        ),
        Paper(
            "Xu, Yang and Bai 2019",
            "Laplace Input and Output Perturbation for Differentially Private Principal "
            "Components Analysis",
            "LIP's noise and error are as far below LOP's as it says, because LOP's noise is far "
            "larger than the data; but LOP is not private at any epsilon, and LIP's components "
            "are mostly not close to the exact ones.",
        ),
        Paper(
            "Chanyaswad, Dytso, Poor and Mittal 2018",
            "A Differential Privacy Mechanism Design Under Matrix-Valued Query",
            "Its theorems hold as very loose bounds, and the numbers of its tables are not found: "
            "by the published formulas the noise drowns the data, and where the order of a table "
            "comes out, what wins is a constant prediction.",
        ),
    )
}
"""By name, in the order in which they are shown."""
