"""The contract every experiment meets.

An experiment is a class in a file of its own; folder and file name it:
``xu/figure1.py`` has the key ``xu_figure1``. It
says which pieces of work redo it and how what is found is drawn. What the paper
says of it, and how that is looked at, stands in the paper's list; see `said`. It
draws nothing and knows no page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, dataclass_transform

from dpviz.mechanisms import Mechanism
from dpviz.papers.measurements import Measurements
from dpviz.papers.said import Said, has_text, said_of, text_of


class Effort(StrEnum):
    """How much work to do: the paper's own number of runs, or a few."""

    QUICK = "quick"
    FULL = "full"


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Part:
    """One piece of work, small enough to be lost.

    Experiments add fields, and theirs are frozen dataclasses as this one; all
    must be plain values with a complete ``repr``, which names the part in the store.

    Attributes
    ----------
    data : str
        Key of the remote data set it reads; empty for none.
    """

    data: str = ""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


@dataclass(frozen=True)
class Series:
    """How one series of a chart is shown.

    Attributes
    ----------
    name : str
        As in `Point.series`.
    key : str
        Of the mechanism whose colour it has; empty for what no mechanism does.
    """

    name: str
    key: str = ""

    @classmethod
    def of(cls, shown: Mechanism | Series | str) -> Series:
        """Return the series of a variant, in its mechanism's colour, or of a name alone."""
        if isinstance(shown, Mechanism):
            return cls(shown.label, shown.key)
        return cls(shown) if isinstance(shown, str) else shown


@dataclass(frozen=True)
class Chart:
    """What a picture shows: one quantity along x, a panel per data set.

    Attributes
    ----------
    name : str
        Unique within the experiment; names files.
    title : str
    quantity : str
        As in `Point.quantity`.
    x_label, y_label : str
    series : tuple of Series
        In the order of the legend; those without a point are left out.
    log_x, log_y : bool
    share_y : bool
        Whether panels share the limits of y.
    """

    name: str
    title: str
    quantity: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    share_y: bool = False


@dataclass(frozen=True)
class PrintedFrame:
    """The printed frame of one panel of a figure.

    Attributes
    ----------
    panel : str
        As in `Point.panel`.
    x, y : tuple of float
        The marks of its axes, where the paper's text tells them.
    """

    panel: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()


@dataclass(frozen=True)
class Info:
    """What a reader must know of an experiment.

    Attributes
    ----------
    title : str
        What it is about, without the place: "Captured variance against n".
    paper : str
        Authors and year, the same for all experiments of a paper.
    url : str
        Where to read the paper, or empty.
    place : str
        "Table 3", "Figure 1".
    about : str
        One to three sentences: what the paper did and found.
    settings : tuple of str
        The paper's settings, as it states them.
    choices : tuple of str
        What the paper leaves open or what differs here, and what was chosen.
    cautions : tuple of str
        What is not private in the experiment, or whose claim does not hold.
    order : int
        Order, unique.
    frames : tuple of PrintedFrame
        Of a figure, in the order of the paper.
    legend : tuple of str
        Of a figure, as printed.
    """

    title: str
    paper: str
    place: str
    about: str
    settings: tuple[str, ...]
    order: int
    url: str = ""
    choices: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    frames: tuple[PrintedFrame, ...] = ()
    legend: tuple[str, ...] = ()


def _info(paper: str, name: str) -> Info | None:
    """Return what a paper's text file says of an experiment; None of what is shared."""
    text = text_of(paper)
    facts: dict[str, Any] = dict(text["experiment"].get(name, {}))
    if not facts:
        return None
    facts.pop("chart", None)
    frames = tuple(
        PrintedFrame(one["panel"], tuple(one.get("x", ())), tuple(one.get("y", ())))
        for one in facts.pop("frame", ())
    )
    prose: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in facts.items()
    }
    return Info(paper=text["name"], url=text["url"], frames=frames, **prose)


class Experiment(ABC):
    """Base of all experiments; see the module docstring."""

    info: ClassVar[Info]
    key: ClassVar[str]
    timed: ClassVar[frozenset[str]] = frozenset()
    """Quantities that are times, and so differ from run to run."""
    pictures: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """By name of a chart its quantity and then its series: mechanisms, names, or `Series`."""
    named: ClassVar[Mapping[str, float]] = {}
    """Numbers that titles of charts name in braces."""
    stand_in: ClassVar[str] = ""
    """Key of the experiment on tables that stand in for absent data, whose results ship."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        room = __name__.rpartition(".")[0] + "."
        module = cls.__module__
        inside = module.removeprefix(room) if module.startswith(room) else module.rpartition(".")[2]
        cls.key = inside.replace(".", "_")
        paper, _, name = inside.rpartition(".")
        if paper and "info" not in cls.__dict__ and has_text(paper):
            known = _info(paper, name)
            if known is not None:
                cls.info = known

    @abstractmethod
    def parts(self, effort: Effort) -> list[Part]:
        """Return the pieces of work, in the order in which pictures fill best."""

    @abstractmethod
    def run(self, part: Any, shared: Any, seed: int) -> Measurements:
        """Return the draws of one part.

        Parameters
        ----------
        part : Part
        shared : Any
            What `shared` returned for the part's data.
        seed : int
            Streams are named (seed, experiment, ...), so parts are independent.
        """

    @property
    def said(self) -> list[Said]:
        """What the paper says that is looked at here, in printing order."""
        return [one for one in said_of(self.paper) if one.experiment == self.key]

    @property
    def paper(self) -> str:
        """Folder of the paper; empty where the experiment has none."""
        folder = type(self).__module__.removeprefix(__name__.rpartition(".")[0] + ".")
        return folder.rpartition(".")[0]

    def shared(self, data: str) -> Any:
        """Return what the parts of one data set share; made once per process and data set.

        Parameters
        ----------
        data : str
            Key of a remote data set that is at hand, or empty.
        """
        return None

    def charts(self) -> tuple[Chart, ...]:
        """Return what to draw, with the words and axes that the paper's text file has for it."""
        return tuple(self._chart(name, *drawn) for name, drawn in self.pictures.items())

    def _chart(self, name: str, quantity: str, *series: Mechanism | Series | str) -> Chart:
        facts = text_of(self.paper)["experiment"][self.key.removeprefix(f"{self.paper}_")]
        words = facts["chart"][name]
        logs = words.get("log", "")
        title, shown = words["title"].format(**self.named), tuple(map(Series.of, series))
        axes = (words["x"], words.get("y", quantity))
        share = words.get("share_y", False)
        return Chart(name, title, quantity, *axes, shown, "x" in logs, "y" in logs, share)

    def data(self) -> tuple[str, ...]:
        """Return the keys of the remote data sets that any part reads."""
        keys = [part.data for part in self.parts(Effort.FULL)]
        return tuple(dict.fromkeys(key for key in keys if key))
