"""BibTeX of the papers that mechanisms come from, found by how each names its source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dpviz.mechanisms import Mechanism


@dataclass(frozen=True)
class Reference:
    """One paper.

    Attributes
    ----------
    key : str
        Of the entry: first author's name and year.
    kind : str
        ``inproceedings`` or ``article``.
    fields : tuple of (str, str)
    """

    key: str
    kind: str
    fields: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, str]:
        """First author and year, as a source names them."""
        found = re.fullmatch(r"(\D+)(\d{4})", self.key)
        assert found is not None
        return found[1], found[2]

    @property
    def bibtex(self) -> str:
        """The entry."""
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in self.fields)
        return f"@{self.kind}{{{self.key.lower()},\n{lines}\n}}"


def _paper(key: str, author: str, title: str, where: str, year: int, **more: str) -> Reference:
    journal = more.pop("journal", "")
    kind, place = ("article", "journal") if journal else ("inproceedings", "booktitle")
    fields = [
        ("author", author), ("title", title), (place, journal or where), ("year", str(year)),
        *more.items(),
    ]  # fmt: skip
    return Reference(key, kind, tuple(fields))


REFERENCES = (
    _paper(
        "Amin2019",
        "Amin, Kareem and Dick, Travis and Kulesza, Alex and Mu{\\~n}oz Medina, Andr{\\'e}s and "
        "Vassilvitskii, Sergei",
        "Differentially Private Covariance Estimation",
        "Advances in Neural Information Processing Systems 32",
        2019,
    ),
    _paper(
        "Balle2018",
        "Balle, Borja and Wang, Yu-Xiang",
        "Improving the Gaussian Mechanism for Differential Privacy: Analytical Calibration and "
        "Optimal Denoising",
        "International Conference on Machine Learning",
        2018,
        eprint="1805.06530",
    ),
    _paper(
        "Blocki2012",
        "Blocki, Jeremiah and Blum, Avrim and Datta, Anupam and Sheffet, Or",
        "The Johnson-Lindenstrauss Transform Itself Preserves Differential Privacy",
        "IEEE Symposium on Foundations of Computer Science",
        2012,
        eprint="1204.2136",
    ),
    _paper(
        "Blum2005",
        "Blum, Avrim and Dwork, Cynthia and McSherry, Frank and Nissim, Kobbi",
        "Practical Privacy: The SuLQ Framework",
        "ACM Symposium on Principles of Database Systems",
        2005,
        doi="10.1145/1065167.1065184",
    ),
    _paper(
        "Chanyaswad2018",
        "Chanyaswad, Thee and Dytso, Alex and Poor, H. Vincent and Mittal, Prateek",
        "MVG Mechanism: Differential Privacy under Matrix-Valued Query",
        "ACM Conference on Computer and Communications Security",
        2018,
        eprint="1801.00823",
    ),
    _paper(
        "Chaudhuri2012",
        "Chaudhuri, Kamalika and Sarwate, Anand D. and Sinha, Kaushik",
        "Near-Optimal Differentially Private Principal Components",
        "Advances in Neural Information Processing Systems 25",
        2012,
    ),
    _paper(
        "Dong2022",
        "Dong, Wei and Liang, Yuting and Yi, Ke",
        "Differentially Private Covariance Revisited",
        "Advances in Neural Information Processing Systems 35",
        2022,
        eprint="2205.14324",
    ),
    _paper(
        "d'Orsi2025",
        "d'Orsi, Tommaso and Novikov, Gleb",
        "On Purely Private Covariance Estimation",
        "",
        2025,
        journal="arXiv preprint",
        eprint="2510.26717",
    ),
    _paper(
        "Dwork2006",
        "Dwork, Cynthia and McSherry, Frank and Nissim, Kobbi and Smith, Adam",
        "Calibrating Noise to Sensitivity in Private Data Analysis",
        "Theory of Cryptography Conference",
        2006,
    ),
    _paper(
        "Dwork2009",
        "Dwork, Cynthia and Lei, Jing",
        "Differential Privacy and Robust Statistics",
        "ACM Symposium on Theory of Computing",
        2009,
    ),
    _paper(
        "Dwork2014",
        "Dwork, Cynthia and Talwar, Kunal and Thakurta, Abhradeep and Zhang, Li",
        "Analyze Gauss: Optimal Bounds for Privacy-Preserving Principal Component Analysis",
        "ACM Symposium on Theory of Computing",
        2014,
        doi="10.1145/2591796.2591883",
    ),
    _paper(
        "Hardt2010",
        "Hardt, Moritz and Talwar, Kunal",
        "On the Geometry of Differential Privacy",
        "ACM Symposium on Theory of Computing",
        2010,
        eprint="0907.3754",
    ),
    _paper(
        "Hardt2014",
        "Hardt, Moritz and Price, Eric",
        "The Noisy Power Method: A Meta Algorithm with Applications",
        "Advances in Neural Information Processing Systems 27",
        2014,
        eprint="1311.2495",
    ),
    _paper(
        "Jiang2016",
        "Jiang, Wuxuan and Xie, Cong and Zhang, Zhihua",
        "Wishart Mechanism for Differentially Private Principal Components Analysis",
        "AAAI Conference on Artificial Intelligence",
        2016,
        eprint="1511.05680",
    ),
    _paper(
        "Kapralov2013",
        "Kapralov, Michael and Talwar, Kunal",
        "On Differentially Private Low Rank Approximation",
        "ACM-SIAM Symposium on Discrete Algorithms",
        2013,
        doi="10.1137/1.9781611973105.100",
    ),
    _paper(
        "Liu2022",
        "Liu, Xiyang and Kong, Weihao and Jain, Prateek and Oh, Sewoong",
        "DP-PCA: Statistically Optimal and Differentially Private PCA",
        "Advances in Neural Information Processing Systems 35",
        2022,
        eprint="2205.13709",
    ),
    _paper(
        "Locantore1999",
        "Locantore, N. and Marron, J. S. and Simpson, D. G. and Tripoli, N. and Zhang, J. T. and "
        "Cohen, K. L.",
        "Robust Principal Component Analysis for Functional Data",
        "",
        1999,
        journal="Test",
    ),
    _paper(
        "Sheffet2019",
        "Sheffet, Or",
        "Old Techniques in Differentially Private Linear Regression",
        "International Conference on Algorithmic Learning Theory",
        2019,
    ),
    _paper(
        "Xu2019",
        "Xu, Yahong and Yang, Geng and Bai, Shuangjie",
        "Laplace Input and Output Perturbation for Differentially Private Principal Components "
        "Analysis",
        "",
        2019,
        journal="Security and Communication Networks",
    ),
)

# A source says "Jiang et al. 2016", "Balle and Wang 2018" or "Liu, Kong, Jain and Oh 2022".
_NAMED = re.compile(
    r"((?:d')?[A-Z][a-z]+)(?: et al\.|(?:, [A-Z][a-z]+)*(?: and [A-Z][a-z]+)?) (\d{4})"
)


def sources_of(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return first author and year of every paper that a mechanism names as its source."""
    return _NAMED.findall(mechanism.info.paper)


def references(mechanisms: Iterable[Mechanism]) -> tuple[Reference, ...]:
    """Return the papers that mechanisms come from, each once, in the order of names."""
    named = {source for mechanism in mechanisms for source in sources_of(mechanism)}
    return tuple(one for one in REFERENCES if one.names in named)


def bibtex(mechanisms: Iterable[Mechanism]) -> str:
    """Return the BibTeX of the papers that mechanisms come from."""
    return "\n\n".join(one.bibtex for one in references(mechanisms))
