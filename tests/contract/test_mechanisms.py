"""Every check runs on every variant of every discovered mechanism.

This module names no mechanism, so a new file in ``dpviz/mechanisms`` is tested automatically.
"""

from __future__ import annotations

import ast
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpviz.mechanisms
from dpviz.auditing import audit
from dpviz.auditing.table import listing_rows
from dpviz.cli import main
from dpviz.core.metrics import offered
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Verdict
from dpviz.core.seeding import Draws
from dpviz.extend import checks
from dpviz.mechanisms import all_mechanisms, featured, parse_variants
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism
from dpviz.simulation.defaults import advised
from tests.contract import accounts

ROOT = Path(__file__).resolve().parents[2]
CLASSES = all_mechanisms()
VARIANTS = [variant for cls in CLASSES.values() for variant in checks.variants_of(cls)]

EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0)
DELTAS = (1e-9, 1e-5, 1e-2)
SHAPES = ((50, 2, 1), (1_000, 3, 2), (100_000, 4, 1))  # These are values of (n, d, k).


def named(mechanism: Mechanism) -> str:
    return mechanism.text


AUDIT = checks.no_audit_refutes_it.__name__


@pytest.mark.parametrize("mechanism", VARIANTS, ids=named)
@pytest.mark.parametrize("check", [name for name in checks.CHECKS if name != AUDIT])
def test_mechanism(check: str, mechanism: Mechanism) -> None:
    checks.CHECKS[check](mechanism)


def _first_of_each_family() -> set[str]:
    """Return one mechanism per family, guarantee and release; the long tier tests all others."""
    kinds = {
        (one.info.family, one.info.guarantee, one.info.release): key
        for key, one in reversed(CLASSES.items())
    }
    return set(kinds.values())


FEW = _first_of_each_family()


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=() if key in FEW else pytest.mark.long) for key in CLASSES],
)
def test_no_audit_refutes_any_variant(key: str) -> None:
    """No audit refutes a variant; in one process, indistinguishable variants share an audit."""
    refutations = {}
    for mechanism in checks.variants_of(CLASSES[key]):
        try:
            checks.CHECKS[AUDIT](mechanism)
        except AssertionError as error:
            refutations[mechanism.text] = str(error)
    assert refutations == {}


def test_a_sampler_whose_time_depends_on_the_table_is_seen() -> None:
    """Control: the check for timing distinguishes rejection samplers from additive noise."""
    timing = [m for m in VARIANTS if m.info.timed and checks.takes_more_or_less(m)]
    assert len({type(mechanism) for mechanism in timing}) >= 3


# Privacy -------------------------------------------------------------------------------------


def settings(kind: str, relation: Relation) -> Iterator[tuple[Problem, Budget]]:
    for n, d, k in SHAPES:
        problem = Problem(n, d, k, relation, checks.domain_of(kind, d))
        for epsilon in EPSILONS:
            for delta in DELTAS:
                yield problem, Budget(epsilon, delta)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("mechanism", VARIANTS, ids=named)
def test_the_status_is_what_a_second_account_finds(
    mechanism: Mechanism,
    relation: Relation,
    kind: str,
    record_property: Callable[[str, object], None],
) -> None:
    """A claim fails exactly if neighbours break it; otherwise the loss is at most the claim."""
    false_ones = []
    for problem, budget in settings(kind, relation):
        if mechanism.why_not(problem, budget) is not None:
            continue
        claim = mechanism.claim(problem, budget)
        if claim is None:
            continue
        loss = mechanism.spent(problem, budget)
        verdict = mechanism.verdict(problem, budget, loss)
        where = f"n {problem.n}, d {problem.d}, epsilon {budget.epsilon:g}, delta {budget.delta:g}"
        if verdict.fails:
            false_ones.append(where)
            # Only an exact loss or an attack refutes a claim; an upper bound on the loss cannot.
            assert verdict is not Verdict.UNPROVEN or loss is None or not loss.exact, where
        else:
            if loss is not None and loss.delta == claim.delta:
                assert loss.epsilon <= claim.epsilon * (1 + 1e-6), where
            if mechanism.info.guarantee == "pure":
                parts = mechanism.calibrate(problem, budget).parts
                losses = [math.inf if isinstance(p, GaussianPart) else p.epsilon for p in parts]
                assert sum(losses) <= claim.epsilon * (1 + 1e-9), where
        account = None
        if isinstance(mechanism, AdditiveMechanism):
            account = accounts.second_account(mechanism, problem, budget)
        if account is None:
            continue
        # The stated sensitivity covers every pair found, and is not far above the worst of them.
        assert account.found <= account.declared * (1 + 1e-9), where
        assert account.found >= 0.9 * account.declared, where
        assert verdict.fails == account.exceeds(claim), where
    record_property("refuted", "; ".join(false_ones))
    print(f"{mechanism.text}, {relation}, {kind}: refuted at {false_ones or 'no setting'}")


def test_the_second_account_is_not_blind() -> None:
    """The second account detects half the required noise, and accepts more than required."""
    caught = 0
    problem = Problem(100, 3, 1, Relation.REPLACE, Domain.ball(3))
    budget = Budget(1.0, 1e-5)
    for mechanism in VARIANTS:
        if not isinstance(mechanism, AdditiveMechanism):
            continue
        if mechanism.why_not(problem, budget) is not None:
            continue
        account = accounts.second_account(mechanism, problem, budget)
        if account is None or mechanism.status(problem, budget).verdict is not Verdict.HOLDS:
            continue
        claim = mechanism.claim(problem, budget)
        assert claim is not None
        assert not account.exceeds(claim)
        lying = replace_scale(mechanism, 0.5)
        weaker = accounts.second_account(lying, problem, budget)
        assert weaker is not None
        assert weaker.exceeds(claim)
        caught += 1
    assert caught > 0


def replace_scale(mechanism: AdditiveMechanism, factor: float) -> AdditiveMechanism:
    """Return the mechanism with its noise multiplied and its accounting unchanged."""
    base = type(mechanism)

    class Lying(base):  # type: ignore[valid-type, misc]
        def calibrate(self, problem: Problem, budget: Budget) -> object:
            calibration = super().calibrate(problem, budget)
            return replace(calibration, scale=calibration.scale * factor)

    return Lying()


# The mechanisms ------------------------------------------------------------------------------


def test_keys_slots_and_labels_are_unique() -> None:
    assert len({cls.info.order for cls in CLASSES.values()}) == len(CLASSES)
    assert len({cls.info.label for cls in CLASSES.values()}) == len(CLASSES)
    assert len({variant.text for variant in VARIANTS}) == len(VARIANTS)
    assert len({variant.label for variant in VARIANTS}) == len(VARIANTS)
    modules = {path.stem for path in Path(dpviz.mechanisms.__path__[0]).glob("[!_]*.py")}
    assert set(CLASSES) == modules
    orders = [cls.info.order for cls in CLASSES.values()]
    assert orders == sorted(orders)


def test_featured_mechanisms_are_six_and_make_a_claim() -> None:
    assert len(featured()) == 6
    for key in featured():
        assert CLASSES[key].info.guarantee != "none"
    # For a table with a delta, dpviz advises the first featured mechanism.
    table = Problem(1_797, 61, 2, Relation.REPLACE, Domain.ball(61))
    assert featured()[0] == advised(table, Budget(1.0, 1e-7), rows=True).key
    assert advised(table, Budget(1.0, 0.0), rows=True).key in featured()


def test_streams_of_different_mechanisms_differ() -> None:
    first = {key: Draws.trials(0, key, [0]).normal(4).tobytes() for key in CLASSES}
    assert len(set(first.values())) == len(CLASSES)


def test_no_variant_named_means_all_of_them() -> None:
    assert [mechanism.key for mechanism in parse_variants(())] == list(CLASSES)


def quoted_keys(path: Path, keys: set[str]) -> list[str]:
    """Return the mechanism keys that a file holds as string literals."""
    places: list[str] = []
    text = path.read_text(encoding="utf-8")
    if not any(key in text for key in keys):  # Parsing is slow, so skip files without a key.
        return places
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            key = node.value.partition("[")[0]
            if key in keys:
                places.append(f"{path.name}:{node.lineno} {node.value!r}")
    return places


def test_no_mechanism_is_named_outside_its_file(tmp_path: Path) -> None:
    mechanisms = ROOT / "dpviz" / "mechanisms"
    files = [path for path in (ROOT / "dpviz").rglob("*.py") if mechanisms not in path.parents]
    # Skip dpviz/papers: it compares the mechanisms of papers, so it must name mechanisms.
    files = [path for path in files if ROOT / "dpviz" / "papers" not in path.parents]
    files += [*(ROOT / "pages").rglob("*.py"), *ROOT.glob("app.py")]
    assert len(files) > 10
    hits = [hit for path in files for hit in quoted_keys(path, set(CLASSES))]
    assert hits == []
    # Control: the search finds the key of a mechanism, with or without parameters.
    key = featured()[0]
    planted_file = tmp_path / "planted.py"
    planted_file.write_text(f"DEFAULT = ('{key}', '{key}[a=1]')\n", encoding="utf-8")
    assert len(quoted_keys(planted_file, set(CLASSES))) == 2


THROW_AWAY = '''
"""A mechanism that exists for one test."""

from __future__ import annotations

from dataclasses import dataclass

from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo
from dpviz.core.arrays import FloatArray
from dpviz.core.params import number
from dpviz.core.parts import LaplacePart
from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import l1_upper
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.sampling.ensembles import symmetric_laplace
from dpviz.core.seeding import Draws


@dataclass(frozen=True)
class ThrowAway(AdditiveMechanism):
    """Laplace noise with a margin."""

    margin: float = number(1.0, 1.0, 9.0, label="Margin", help="Noise factor.", examples=(2.0,))

    info = MechanismInfo(
        label="Throw-away", summary="Adds noise.", paper="none", family="laplace",
        release="matrix", guarantee="pure", order=9_999, law="A + L", calibration="b",
        complexity="d^3", advice="Never.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        scale = self.margin * l1_upper(problem) / budget.epsilon * FACTOR
        return Calibration(problem, budget, scale, (LaplacePart(l1_upper(problem), scale),))

    def standard_noise(self, problem: Problem, draws: Draws) -> FloatArray:
        return symmetric_laplace(draws, problem.d)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        return "A test says so."
'''


@pytest.fixture
def throw_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Add a file beside the mechanisms; ``request.param`` is the noise factor, or the factor and
    the file's text.
    """
    words = request.param if isinstance(request.param, tuple) else (request.param, THROW_AWAY)
    factor, text = words
    key = f"throw_away_{str(factor).replace('.', '_')}_{len(text)}"
    source = text.replace("FACTOR", str(factor))
    (tmp_path / f"{key}.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(dpviz.mechanisms, "__path__", [*dpviz.mechanisms.__path__, str(tmp_path)])
    all_mechanisms.cache_clear()
    yield key
    sys.modules.pop(f"dpviz.mechanisms.{key}", None)
    monkeypatch.undo()
    all_mechanisms.cache_clear()


@pytest.mark.parametrize("throw_away", [1.000001], indirect=True)
def test_a_new_file_is_all_it_takes(throw_away: str, capsys: pytest.CaptureFixture[str]) -> None:
    mechanisms = all_mechanisms()
    assert set(mechanisms) == set(CLASSES) | {throw_away}
    assert list(mechanisms)[-1] == throw_away  # The new mechanism's order puts it after all others.
    assert [row["relation"] for row in listing_rows() if row["key"] == throw_away] == [
        str(relation) for relation in Relation
    ]
    assert main(["mechanisms", "--format", "json"]) == 0
    assert throw_away in {row["key"] for row in json.loads(capsys.readouterr().out)}
    assert main(["compare", "iris", "--trials", "3", "--format", "json"]) == 0
    everything = json.loads(capsys.readouterr().out)
    results = {row["mechanism"]: row for row in everything["results"]}
    assert set(results[throw_away]["metrics"]) == set(offered(picture=False))
    for variant in checks.variants_of(mechanisms[throw_away]):
        for check in checks.CHECKS.values():
            check(variant)
    # The new mechanism must not change the numbers of any existing mechanism.
    others = [key for key in CLASSES if key in results]
    arguments = [word for key in others for word in ("--mechanism", key)]
    assert main(["compare", "iris", "--trials", "3", "--format", "json", *arguments]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert alone["results"] == [results[key] for key in others]


EXACT_LOSS = (
    THROW_AWAY
    + '''
    def exact_loss(self, calibration, delta, at_epsilons, tables):
        """Say what only this file knows: a release costs three quarters of the claim."""
        assert tables  # pairs to try
        from dpviz.accounting.losses import ExactLoss

        return ExactLoss(0.75 * at_epsilons[0], tuple(0.0 for _ in at_epsilons), "this file")
'''
)


@pytest.mark.parametrize("throw_away", [(1.000001, EXACT_LOSS)], indirect=True)
def test_a_new_mechanism_with_an_exact_loss_is_one_file(throw_away: str) -> None:
    mechanism = all_mechanisms()[throw_away]()
    result = audit(mechanism, Budget(1.0), d=3, k=1, trials=400)
    assert result.exact is not None
    assert result.exact.source == "this file"
    assert result.epsilon_lower >= 0.75


@pytest.mark.parametrize("throw_away", [0.5], indirect=True)
def test_a_new_file_that_lies_is_caught(throw_away: str) -> None:
    mechanism = all_mechanisms()[throw_away]()
    assert isinstance(mechanism, AdditiveMechanism)
    problem = Problem(100, 3, 1, Relation.REPLACE, Domain.ball(3))
    account = accounts.second_account(mechanism, problem, Budget(1.0))
    assert account is not None
    assert account.exceeds(Budget(1.0))
    assert mechanism.status(problem, Budget(1.0)).verdict is Verdict.REFUTED


def test_a_copy_of_the_template_passes_every_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = Path(dpviz.mechanisms.__path__[0]) / "_template.py"
    key = "copied_template"
    shutil.copy(template, tmp_path / f"{key}.py")
    monkeypatch.setattr(dpviz.mechanisms, "__path__", [*dpviz.mechanisms.__path__, str(tmp_path)])
    all_mechanisms.cache_clear()
    try:
        mechanism_copy = all_mechanisms()[key]
        assert mechanism_copy.info.order not in {cls.info.order for cls in CLASSES.values()}
        for variant in checks.variants_of(mechanism_copy):
            for check in checks.CHECKS.values():
                check(variant)
    finally:
        sys.modules.pop(f"dpviz.mechanisms.{key}", None)
        monkeypatch.undo()
        all_mechanisms.cache_clear()


def test_the_throw_away_file_is_gone() -> None:
    assert set(all_mechanisms()) == set(CLASSES)


def test_a_module_without_a_mechanism_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty_by_mistake.py").write_text('"""Nothing here."""\n', encoding="utf-8")
    monkeypatch.setattr(dpviz.mechanisms, "__path__", [*dpviz.mechanisms.__path__, str(tmp_path)])
    all_mechanisms.cache_clear()
    try:
        with pytest.raises(TypeError, match=r"empty_by_mistake must define one mechanism"):
            all_mechanisms()
    finally:
        sys.modules.pop("dpviz.mechanisms.empty_by_mistake", None)
        monkeypatch.undo()
        all_mechanisms.cache_clear()


def test_numbers_do_not_depend_on_which_other_mechanisms_run() -> None:
    """A mechanism's random numbers do not depend on the other mechanisms that run."""
    noise = {key: np.asarray(Draws.trials(0, key, range(3)).normal(2)).tobytes() for key in CLASSES}
    again = {key: Draws.trials(0, key, range(3)).normal(2).tobytes() for key in reversed(CLASSES)}
    assert noise == again
