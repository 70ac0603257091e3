"""The glossary, the teaching plan, the bibliography and the script: computed, fresh, complete."""

from __future__ import annotations

import ast
import json
import math
import re
import string
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from scipy.optimize import brentq
from scipy.stats import norm

from dpviz.accounting.gaussian import noise_std
from dpviz.core.problem import Budget
from dpviz.core.settings import Settings
from dpviz.lessons import course, teaching
from dpviz.lessons.glossary import DELTA, TERMS, Term, composed, term, worst
from dpviz.lessons.glossary_html import layers_svg, term_picture
from dpviz.mechanisms import all_mechanisms
from dpviz.preparation.load import load_measured
from dpviz.report.figures.handout import bibtex, references, sources_of
from dpviz.simulation.compare import compare
from dpviz.studies import board
from tools.teaching import PATH, text

EACH = [pytest.param(one, id=one.key) for one in TERMS]


def test_there_are_a_dozen_terms() -> None:
    assert len(TERMS) == 12
    assert len({one.key for one in TERMS}) == 12
    assert term("no such term") is TERMS[0]


@pytest.mark.parametrize("one", EACH)
def test_a_term_is_one_sentence_without_a_typed_number_and_a_picture(one: Term) -> None:
    names = {name for _, name, _, _ in string.Formatter().parse(one.sentence) if name}
    assert names == set(one.numbers)
    assert not re.search(r"\d", re.sub(r"\{\w+\}", "", one.sentence))
    assert one.said.endswith(".")
    assert ". " not in one.said.removesuffix(".")
    layers = one.picture()
    assert layers
    for layer in layers:
        assert layer.x.shape == layer.y.shape
        assert np.isfinite(layer.x).all()
        assert np.isfinite(layer.y).all()
    svg = layers_svg(layers, one.space)
    assert svg.startswith("<svg")
    assert "nan" not in svg
    if one.space:  # features on both axes: a unit is as long across as up
        drawn = np.array(re.findall(r'<circle cx="([^"]+)" cy="([^"]+)"', svg), dtype=float)
        meant = np.column_stack([
            np.concatenate([layer.x for layer in layers if layer.kind == "dots"]),
            np.concatenate([layer.y for layer in layers if layer.kind == "dots"]),
        ])  # fmt: skip
        across, up = (np.polyfit(meant[:, axis], drawn[:, axis], 1)[0] for axis in (0, 1))
        assert across == pytest.approx(-up, rel=0.01)  # places have one decimal
    assert "data:image/svg+xml;base64," in term_picture(one)


def test_every_number_of_the_glossary_against_other_code() -> None:
    # the standard deviation that meets (1, 1e-6): by the profile itself
    std = noise_std(Budget(1.0, DELTA))
    mu = 1 / std
    met = norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu)
    assert met == pytest.approx(DELTA, rel=1e-6)
    settings = Settings(table="digits", delta=DELTA, trials=20, mechanisms=("gaussian",))
    measured = load_measured(settings)
    values = measured.moment.eigenvalues
    share, chance = values[:2].sum() / values.sum(), 2 / len(values)
    total = compare(measured, settings).results[0].metrics["captured_total"].mean()
    recovered = (total - chance) / (share - chance)
    # pure releases compose to the sum of epsilons, and to nothing smaller at delta 0
    assert composed(4) == pytest.approx(1 / (1 + math.exp(-4)))
    assert all(first < later for first, later in pairwise(composed(n) for n in range(1, 5)))
    alarm = 1 / (1 + math.e)
    expected = {
        "epsilon": ["1", f"{math.e:.2g}"],
        "delta": ["1e-6", "2e-6"],
        "sensitivity": [f"{math.sqrt(2):.3g}"],
        "noise": ["1e-6", "1", f"{std:.2g}"],
        "eigenspectrum": ["2", f"{100 * share:.0f}"],
        # a semicircle of radius 2: a lone spike is seen from 1 on, with overlap 1 - 1/theta^2
        "noise-edge": [f"{100 * 1 / 2:.0f}", f"{100 * (1 - 1 / 2**2):.0f}"],
        "recovery": ["100", "1", f"{100 * recovered:.0f}"],
        "composition": ["1", "73", "100", "4", f"{100 / (1 + math.exp(-4)):.3g}"],
        "both-worlds": ["1", f"{100 * alarm:.0f}", "100", f"{100 * (1 - alarm):.0f}"],
    }
    for one in TERMS:
        found = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", one.said)
        assert found == expected.get(one.key, []), one.key
    assert (expected["both-worlds"][1], expected["both-worlds"][3]) == ("27", "73")


def test_no_pair_of_unit_rows_moves_more_than_the_sensitivity() -> None:
    moved = [worst(turn) for turn in np.linspace(0, math.pi, 181)]
    assert max(moved) == pytest.approx(math.sqrt(2))


# The plan ----------------------------------------------------------------------------


def test_the_plan_on_disk_is_the_one_computed_now() -> None:
    assert PATH.read_text(encoding="utf-8") == text()


def test_the_plans_fit_their_time() -> None:
    for most in (20, 45, 90):
        assert 0.75 * most <= teaching.minutes(teaching.fitting(most)) <= most
    assert not any(lesson.experts for lesson, _ in teaching.fitting(45))
    assert [lesson for lesson, _ in teaching.fitting(90)] == list(course())


def test_the_plan_names_every_step_and_every_answer() -> None:
    text = teaching.document()
    for lesson in course():
        for place in range(1, len(lesson.steps) + 1):
            assert f"`{teaching.link(lesson, place)}`" in text
            asked = lesson.question_at(place - 1)
            if asked is not None:
                assert f"{asked.right_text}**" in text
    handout, answers = text.partition("## Handout")[2].split("## Teacher's sheet")
    for task, said in teaching.exercises():
        assert "{" not in task + said
        assert task in handout
        assert said in answers
        assert said not in handout
    for word in ("Aim", "Expect", "Board"):
        assert text.count(f"\n- {word}: ") == len(course())


def test_a_budget_for_ten_is_counted_as_dp_accounting_counts_it() -> None:
    """Ten Gaussian releases, each at the epsilon of the teacher's sheet, spend 1 together."""
    (found,) = (said for task, said in teaching.exercises() if task.startswith("Spend a budget"))
    each = float(re.search(r"and (\S+) each", found)[1])  # type: ignore[index]
    spent = gaussian_mechanism.get_epsilon_gaussian
    alone = brentq(lambda sigma: spent(sigma, 1e-5) - each, 0.5, 100)
    assert spent(alone / math.sqrt(10), 1e-5) == pytest.approx(1, rel=0.03)


# Papers -----------------------------------------------------------------------------


ENTRIES = [one for cls in all_mechanisms().values() for one in cls.info.references]


def test_every_source_of_a_mechanism_has_an_entry() -> None:
    known = {one.names for one in ENTRIES}
    found = set()
    for cls in all_mechanisms().values():
        named = set(sources_of(cls()))
        assert named <= known, cls.info.paper
        if cls.info.guarantee != "none" and cls.info.paper != "dpviz":  # our own, after nobody
            assert named, cls.info.paper
        found |= named
    assert found == known, "a paper that no mechanism comes from"


def test_entries_are_written_once_and_balanced() -> None:
    everybody = [cls() for cls in all_mechanisms().values()]
    text = bibtex(everybody)
    assert text.count("@") == len(references(everybody)) == len(ENTRIES)
    assert text.count("{") == text.count("}")
    for one in ENTRIES:
        for name in ("author", "title", "year"):
            assert dict(one.fields)[name]
        assert one.names[1] == dict(one.fields)["year"]
    assert bibtex([]) == ""


# The same again -----------------------------------------------------------------------


def test_the_script_says_every_setting() -> None:
    settings = Settings(table="iris", epsilon=2.0, trials=5, mechanisms=("gaussian",))
    tree = ast.parse(board.script(settings))
    call = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dpviz.compare"
    )
    said = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    told = settings.to_json()
    told["center"] = settings.center
    assert said == {name: value for name, value in told.items() if name != "table"}
    assert ast.literal_eval(call.args[0]) == "iris"
    # a name with quotes stays a text
    ast.parse(board.script(settings, 'it\'s "mine".csv'))


def test_the_notebook_is_one() -> None:
    found = json.loads(board.notebook(Settings(table="iris")))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in found["cells"]}) == len(found["cells"])
    for cell in found["cells"]:
        if cell["cell_type"] == "code":
            ast.parse(cell["source"])
            assert cell["outputs"] == []


def test_pictures_of_space_are_those_of_two_features() -> None:
    assert {one.key for one in TERMS if one.space} == {"neighbours", "component", "row-bound"}
