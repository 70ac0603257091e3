"""What a release keeps is foretold before anything is spent, for exactly what then runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.metrics import chance_share, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.datasets import Table
from dpviz.lessons import ceiling
from dpviz.lessons.questions import Answers
from dpviz.releasing.making import plan
from dpviz.releasing.noise import COUNT, off_diagonal_std, released, released_count, released_mean
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.predicting import LOUD, Outlook, SchemaRows
from dpviz.releasing.schema import Column, Schema
from dpviz.simulation.bounds import noise_edge
from dpviz.simulation.picture.account import SHARE
from tests.unit.test_decide import heavy_tailed

RELEASES = 200
OPTIONS = ReleaseOptions(rows="unit", scale="limits", epsilon=1.0, delta=1e-6, k=2)


def _schema(table: Table, reach: float = 20.0) -> Schema:
    return Schema(tuple(Column(name, -reach, reach) for name in table.columns), rows_a_person=1)


def _far() -> Table:
    """Return a table whose mean is 5 lengths of component 1 from the middle of its limits."""
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((3000, 6)) * [4, 2, 1, 1, 1, 1] + [0, 0, 20, 0, 0, 0]
    return Table("far", rows, tuple("abcdef"))


def _visits() -> tuple[Table, Schema]:
    """Return the same people with three visits each, of which the first counts."""
    rows = np.repeat(_far().rows, 3, axis=0)
    who = np.repeat(np.arange(3000.0), 3)
    table = Table("visits", np.column_stack([who, rows]), ("who", *"abcdef"))
    columns = (Column("who", use=False), *_schema(_far()).columns)
    return table, Schema(columns, rows_a_person=1, person="who")


def _made(
    table: Table, schema: Schema, options: ReleaseOptions, rows: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return recovery and |cosine| of component 1 of many releases, by what `make` calls.

    And the share of them whose components can all be told from noise, as a release is read.
    """
    planned = plan(options, table, schema)
    bits, noise = planned.bits, planned.noise
    scaled = rows / np.array(planned.declared.scale.value)
    centred = scaled - scaled.mean(0)
    A = centred.T @ centred / len(rows)
    values, vectors = np.linalg.eigh(A)
    chance = chance_share(SecondMoment(A, len(rows)), options.k)
    total = planned.total() if options.center == "private" else None
    fixed = planned.moment() if total is None else None
    count, n = planned.count(), planned.records.n
    found, cosines, told = np.empty(RELEASES), np.empty(RELEASES), 0
    for at in range(RELEASES):
        if noise.side(COUNT) is not None:
            n = released_count(count, noise, planned.records.n, bits)
        mean = None if total is None else released_mean(total, noise, n, bits)
        moment = planned.moment(planned.centred(mean)) if fixed is None else fixed
        heights, bases = np.linalg.eigh(released(moment, noise, n, bits))
        top = bases[:, ::-1][:, : options.k]
        edge = noise_edge(off_diagonal_std(noise.law, noise.scale, n, bits), len(heights))
        told += bool((-np.diff(heights[::-1])[: options.k] > edge).all())
        share = np.trace(top.T @ A @ top) / values[::-1][: options.k].sum()
        found[at] = recovery_of(share, chance)
        cosines[at] = abs(top[:, 0] @ vectors[:, -1])
    return found, cosines, told / RELEASES


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (heavy_tailed(), replace(OPTIONS, epsilon=0.2)),
        (heavy_tailed(), replace(OPTIONS, rows="bound", row_bound="0.75", epsilon=0.6)),
        (heavy_tailed(), replace(OPTIONS, delta=0.0, epsilon=1.0)),
        (_far(), replace(OPTIONS, center="private", epsilon=1.5)),
        (_visits(), replace(OPTIONS, center="private", epsilon=1.5)),
        (heavy_tailed(), replace(OPTIONS, epsilon=0.35, picture=SHARE)),
    ],
    ids=["unit", "bound", "pure", "mean", "visits", "picture"],
)
def test_two_hundred_releases_keep_what_was_predicted(
    table: Table | tuple[Table, Schema], options: ReleaseOptions
) -> None:
    """Of visits the mean is that of those that count: by n it would be a third, and be found."""
    rows = table.rows if isinstance(table, Table) else _far().rows
    table, schema = (table, _schema(table)) if isinstance(table, Table) else table
    seen = SchemaRows.of(table, schema).outlook(options)
    assert seen.recovery > 0.5
    found, cosines, told = _made(table, schema, options, rows)
    # 4 standard errors of two shares at most
    assert abs(told - seen.readable) < 2 * math.sqrt(1 / 128 + 1 / RELEASES)
    assert abs(found.mean() - seen.recovery) < 0.03
    assert abs(cosines.mean() - seen.cosines[0]) < 0.05
    # .95 at least, within 4 standard errors of 200 releases, whose entropy is the system's
    assert (found >= seen.low).mean() > 0.95 - 4 * math.sqrt(0.0475 / RELEASES)
    wrong = SchemaRows.of(table, schema).outlook(replace(options, epsilon=options.epsilon / 8))
    assert abs(found.mean() - wrong.recovery) > 0.03  # the control


def test_component_1_is_found_where_prediction_says_so_and_the_mean_where_it_warns() -> None:
    table = _far()
    rows = SchemaRows.of(table, _schema(table, 40.0))
    # entropy is the system's: at epsilon 3 the least |cosine| of 200 is .997, and ln(1 - |cosine|)
    # lies 8 standard deviations below that of .9
    asked = replace(OPTIONS, k=1, epsilon=3.0)
    here, around = (rows.outlook(replace(asked, center=c)) for c in ("typical", "private"))
    assert here.centre_share > LOUD
    assert here.cosines[0] < 0.3
    chosen = rows.best(asked)
    assert chosen.options.center == "private"
    assert chosen.cosines[0] >= 0.9
    assert around.recovery > here.recovery
    schema = _schema(table, 40.0)
    planned = plan(chosen.options, table, schema)
    scaled = table.rows / 40.0
    top = np.linalg.eigh(np.cov(scaled.T))[1][:, -1]
    total = planned.total()
    for _ in range(20):
        mean = released_mean(total, planned.noise, 3000, planned.bits)
        noisy = released(planned.moment(planned.centred(mean)), planned.noise, 3000, planned.bits)
        assert abs(np.linalg.eigh(noisy)[1][:, -1] @ top) >= 0.9


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("center", ["typical", "private"])
def test_many_epsilons_at_once_are_each_alone(delta: float, center: str) -> None:
    options, epsilons = replace(OPTIONS, delta=delta, center=center), (0.2, 3.0)
    together = SchemaRows.of(_far(), _schema(_far())).recoveries(options, epsilons, draws=3)
    alone = [
        SchemaRows.of(_far(), _schema(_far())).outlook(replace(options, epsilon=one), draws=3)
        for one in epsilons
    ]
    assert together == [one.recovery for one in alone]
    assert together[0] != together[1]


def _prospect() -> ceiling.Prospect:
    table = heavy_tailed()
    return ceiling.Prospect("hospital", SchemaRows.of(table, _schema(table)), OPTIONS)


def test_a_hospitals_table_keeps_nine_tenths_at_an_epsilon_below_one() -> None:
    found = _prospect()
    needed = found.needed(0.9)
    assert needed is not None
    assert needed < 0.5
    assert found.rows.least_epsilon(found.best(1.0).options, 0.9) == pytest.approx(needed, rel=0.4)


def test_a_card_that_is_drawn_again_predicts_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    prospect, asked = _prospect(), list[ReleaseOptions]()
    outlook = SchemaRows.outlook

    def counted(rows: SchemaRows, options: ReleaseOptions, **more: int) -> Outlook:
        asked.append(options)
        return outlook(rows, options, **more)

    monkeypatch.setattr(SchemaRows, "outlook", counted)
    answers = Answers(ceiling=1.15)  # too low, so that the card says what would help
    first = ceiling.html(ceiling.card(prospect, answers))
    assert "What would help" in first
    drawn = len(asked)
    assert ceiling.html(ceiling.card(prospect, answers)) == first
    assert len(asked) == drawn > 0
    ceiling.card(prospect, replace(answers, ceiling=1.3))
    assert len(asked) > drawn  # the control


def test_the_last_epsilon_that_is_looked_at_is_not_rounded_beyond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = SchemaRows.of(_far(), _schema(_far()))

    def last_alone(self: SchemaRows, options: ReleaseOptions, epsilons: list[float], **rest: object
    ) -> list[float]:  # fmt: skip
        return [float(epsilon == 100) for epsilon in epsilons]

    monkeypatch.setattr(SchemaRows, "recoveries", last_alone)
    assert rows.least_epsilon(OPTIONS, 0.9) == 100  # and not 110


def test_a_ceiling_is_never_passed_by_what_is_claimed() -> None:
    for after in (1.1, 2, 3, 5, 10, 25, 50, 90, 99):
        epsilon = ceiling.epsilon_under(after)
        assert ceiling.becomes(epsilon) <= after
        assert ceiling.becomes(epsilon * 1.012) > after  # three digits are not far below it
    assert ceiling.epsilon_under(3) == 1.11
    for after in (2, 3, 5, 10, 25):  # what is asked for is what is answered
        assert ceiling.of_hundred(ceiling.becomes(ceiling.epsilon_under(after))) == str(after)
    assert ceiling.of_hundred(2.91) == "3"


def test_the_card_says_yes_no_and_never() -> None:
    prospect = _prospect()
    yes = ceiling.card(prospect, Answers())
    assert yes.verdict == "yes"
    assert "parts survive at your ceiling" in yes.headline
    assert "That is ε 1.11." in ceiling.html(yes)  # and no 1.1 or, above the ceiling, 3.5 for 3.49
    assert "drives component 1”? Yes." in ceiling.html(yes)
    often = math.floor(100 * yes.outlook.readable)
    told = f"In {often} of 100 releases both components can be told from"
    assert told in ceiling.html(yes)
    few = replace(prospect.options, delta=0.0)
    alone = SchemaRows(prospect.rows.schema, 40, prospect.rows.cells)
    no = ceiling.card(ceiling.Prospect("few", alone, few), Answers(ceiling=2.0))
    said = ceiling.html(no)
    assert no.verdict == "no"
    assert "hardly protection" in said
    assert "three times as many people" in said
    fewer = ceiling.Prospect("few", SchemaRows(alone.schema, 20, alone.cells), few)
    assert ceiling.card(fewer, Answers(ceiling=2.0)).counts == (
        "✗",
        "would drown under this ceiling",
    )
    pictured = ceiling.Prospect("t", prospect.rows, replace(prospect.options, picture=SHARE))
    assert "a picture of counts</td><td><small>is counted in above" in ceiling.html(
        ceiling.card(pictured, Answers())
    )
    drowns = ceiling.Prospect("t", prospect.rows, replace(prospect.options, picture=SHARE, k=1))
    drowned = ceiling.card(
        ceiling.Prospect("few", SchemaRows(alone.schema, 20, alone.cells), drowns.options),
        Answers(ceiling=2.0, survive="50"),
    )
    assert drowned.drowns  # though enough of the structure may survive
    assert drowned.verdict == "no"
    assert "Not with a picture of counts" in drowned.headline
    assert not ceiling.card(pictured, Answers()).drowns
    never = ceiling.html(ceiling.card(prospect, Answers(hand_out="picture")))
    assert "No. A picture of the people cannot be published, at any ceiling." in never
    assert "base64" not in never
    taken = SchemaRows(replace(prospect.rows.schema, from_data=True), 591, prospect.rows.cells)
    look = ceiling.card(ceiling.Prospect("t", taken, prospect.options), Answers())
    assert look.verdict == "look"
    assert "taken from this table" in ceiling.html(look)
    assert ">PLAN<" not in ceiling.html(yes)
    assert "dp-plan" in ceiling.page(yes)
    planned = json.loads(ceiling.plan(yes))
    assert (planned["status"], planned["claim"]["epsilon"]) == ("PLAN", 1.11)
    assert planned["unit"]["protected"] == "person"
    assert planned["predicted"]["recovery"] == yes.outlook.recovery


@pytest.mark.parametrize(("wanted", "said"), [("75", "need ε"), ("95", "no ε keeps")])
def test_that_no_epsilon_is_enough_is_said_of_bounds_alone(wanted: str, said: str) -> None:
    found = SchemaRows.of(heavy_tailed(), _schema(heavy_tailed(), reach=1.0))
    people = SchemaRows(found.schema, 10, found.cells)
    few = ceiling.Prospect("few", people, replace(OPTIONS, delta=0.0))
    card = ceiling.card(few, replace(Answers(ceiling=25.0), survive=wanted))
    assert said in card.headline
    level = card.answers.recovery
    assert max(kept[-1] for _, kept in few.curves) < level  # the curve, up to 99 in 100, is short
    each = people.pipelines(few.options)
    least = [people.least_epsilon(one, level) for one in each]
    enough = [one for one in least if one is not None]
    assert card.needed == min(enough, default=None)
    assert few.without_noise == max(people.outlook(one, draws=2).without_noise for one in each)
    assert (few.without_noise < level) == (said == "no ε keeps")
    more = dict(few.helps(level))["three times as many people"]
    assert (more is None) == (card.needed is None)
    assert more is None or more < (card.needed or 0)


def test_a_long_tail_that_a_limit_cuts_off_is_kept_by_its_logarithm() -> None:
    rng = np.random.default_rng(5)
    healthy = np.exp(rng.normal(0, 0.2, (600, 4)))
    healthy[:, 0] = np.exp(2 * rng.normal(0, 1, 600))  # such as CRP, from .01 to 300
    healthy[:, 1] *= np.sqrt(healthy[:, 0])
    table = Table("laboratory", healthy, ("crp", "b", "c", "d"))

    def rows(high: float, *, log: bool) -> SchemaRows:
        columns = tuple(Column(name, 0.01, high, 1, log=log) for name in table.columns)
        return SchemaRows.of(table, Schema(columns, rows_a_person=1))

    options = replace(OPTIONS, k=1, epsilon=1.1)
    narrow, kept = rows(3, log=False), rows(300, log=True)
    assert set(narrow.tails) == {"crp", "b"}
    assert kept.tails == {}
    lost, saved = (found.best(options) for found in (narrow, kept))
    wide = rows(300, log=False).best(options)  # a wide limit alone keeps less
    assert lost.without_noise + 0.1 < wide.without_noise < saved.without_noise - 0.1
    assert lost.recovery + 0.1 < wide.recovery < saved.recovery - 0.1
    said = ceiling.html(ceiling.card(ceiling.Prospect("t", narrow, options), Answers()))
    assert "lost to the stated limits, with no noise" in said
    assert "“crp” is cut in " in said
    assert "its logarithm" in said
    with pytest.raises(InvalidSetting, match="above 0, as its logarithm counts"):
        Column("a", 0, 1, log=True)


def test_nothing_of_the_table_is_markup() -> None:
    table = heavy_tailed()
    evil = Table("<b>", table.rows, tuple(f"<i>{name}</i>" for name in table.columns))
    found = ceiling.card(
        ceiling.Prospect("<b>", SchemaRows.of(evil, _schema(evil)), OPTIONS), Answers()
    )
    assert "<i>" not in ceiling.page(found)
    assert "<h1>Plan of a release: <b>" not in ceiling.page(found)


def test_what_cannot_be_predicted_is_said() -> None:
    flat = Table("flat", np.eye(4).repeat(5, 0), tuple("abcd"))
    rows = SchemaRows.of(flat, _schema(flat))
    assert isinstance(rows.outlook(OPTIONS), Outlook)
    with pytest.raises(ValueError, match="from 1 to 3"):
        rows.outlook(replace(OPTIONS, k=4))
    assert math.isfinite(rows.outlook(OPTIONS).centre_share)
