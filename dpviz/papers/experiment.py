"""The contract that every experiment meets.

An experiment is a class in its own file. Folder and file give the key: ``xu/figure1.py`` has the
key ``xu_figure1``. The class defines its pieces of work and how to chart their results. The paper's
statements and their tests are in the paper's list; see `said`. An experiment draws no chart and
does not depend on any page.
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
    """Amount of work: the paper's own number of runs, or a few runs."""

    QUICK = "quick"
    FULL = "full"


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Part:
    """One piece of work, small enough to be repeated if it is lost.

    Experiments add fields in subclasses, which are frozen dataclasses too. All fields must be plain
    values with a complete ``repr``, which names the part in the store.

    Attributes
    ----------
    data : str
        Key of the remote data set that the part reads; empty for none.
    """

    data: str = ""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


@dataclass(frozen=True)
class Series:
    """How a chart shows one series.

    Attributes
    ----------
    name : str
        Name of the series, as in `Point.series`.
    key : str
        Key of the mechanism that gives the colour; empty for a series without a mechanism.
    """

    name: str
    key: str = ""

    @classmethod
    def of(cls, shown: Mechanism | Series | str) -> Series:
        """Return the series of a mechanism, in its colour, or of a plain name."""
        if isinstance(shown, Mechanism):
            return cls(shown.label, shown.key)
        return cls(shown) if isinstance(shown, str) else shown


@dataclass(frozen=True)
class Chart:
    """A chart: one quantity along x, with one panel per data set.

    Attributes
    ----------
    name : str
        Name that is unique within the experiment; used in file names.
    title : str
    quantity : str
        Measured quantity, as in `Point.quantity`.
    x_label, y_label : str
    series : tuple of Series
        Series in the order of the legend; a series without points is left out.
    log_x, log_y : bool
    share_y : bool
        Whether all panels share the limits of y.
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
        Panel, as in `Point.panel`.
    x, y : tuple of float
        Tick marks of the panel's axes, if the paper's text states them.
    """

    panel: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()


@dataclass(frozen=True)
class Info:
    """Facts that a reader must know about an experiment.

    Attributes
    ----------
    title : str
        The subject, without the place in the paper, such as "Captured variance against n".
    paper : str
        Authors and year, the same for all experiments of a paper.
    url : str
        Web address of the paper, or empty.
    place : str
        Place in the paper, such as "Table 3" or "Figure 1".
    about : str
        The paper's method and finding, in one to three sentences.
    settings : tuple of str
        The paper's settings, as it states them.
    choices : tuple of str
        Details that the paper leaves open or that differ here, and the choice that we made.
    cautions : tuple of str
        Parts of the experiment that are not private, or mechanisms whose claim does not hold.
    order : int
        Unique place in lists of experiments.
    frames : tuple of PrintedFrame
        Frames of a figure, in the order of the paper.
    legend : tuple of str
        Legend of a figure, as the paper prints it.
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
    """Return an experiment's facts from the paper's text file, or None if there are none."""
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
    """Quantities that are times and therefore differ from run to run."""
    pictures: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Contents of a chart by its name: a quantity, then series as mechanisms, names or `Series`."""
    named: ClassVar[Mapping[str, float]] = {}
    """Numbers that replace the names in braces in chart titles."""
    stand_in: ClassVar[str] = ""
    """Key of the experiment on tables that replace absent data; its results are shipped."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        room = __name__.rpartition(".")[0] + "."
        module = cls.__module__
        inside = module.removeprefix(room) if module.startswith(room) else module.rpartition(".")[2]
        cls.key = inside.replace(".", "_")
        paper, _, name = inside.rpartition(".")
        if paper and "info" not in cls.__dict__ and has_text(paper):
            facts = _info(paper, name)
            if facts is not None:
                cls.info = facts

    @abstractmethod
    def parts(self, effort: Effort) -> list[Part]:
        """Return the pieces of work; early pieces should fill the charts best."""

    @abstractmethod
    def run(self, part: Any, shared: Any, seed: int) -> Measurements:
        """Return the simulated values of one part.

        Parameters
        ----------
        part : Part
        shared : Any
            The result of `shared` for the data of the part.
        seed : int
            Seed of the random streams, named (seed, experiment, ...), so parts are independent.
        """

    @property
    def said(self) -> list[Said]:
        """The paper's statements that this experiment tests, in printing order."""
        return [one for one in said_of(self.paper) if one.experiment == self.key]

    @property
    def paper(self) -> str:
        """Folder of the paper; empty if the experiment has none."""
        folder = type(self).__module__.removeprefix(__name__.rpartition(".")[0] + ".")
        return folder.rpartition(".")[0]

    def shared(self, data: str) -> Any:
        """Return what all parts on one data set share; called once per process and data set.

        Parameters
        ----------
        data : str
            Key of an available remote data set, or empty.
        """
        return None

    def charts(self) -> tuple[Chart, ...]:
        """Return the charts, with words and axes from the paper's text file."""
        return tuple(self._chart(name, *drawn) for name, drawn in self.pictures.items())

    def _chart(self, name: str, quantity: str, *series: Mechanism | Series | str) -> Chart:
        facts = text_of(self.paper)["experiment"][self.key.removeprefix(f"{self.paper}_")]
        words = facts["chart"][name]
        logs = words.get("log", "")
        title, lines = words["title"].format(**self.named), tuple(map(Series.of, series))
        axes = (words["x"], words.get("y", quantity))
        share = words.get("share_y", False)
        return Chart(name, title, quantity, *axes, lines, "x" in logs, "y" in logs, share)

    def data(self) -> tuple[str, ...]:
        """Return the keys of the remote data sets that any part reads."""
        keys = [part.data for part in self.parts(Effort.FULL)]
        return tuple(dict.fromkeys(key for key in keys if key))
