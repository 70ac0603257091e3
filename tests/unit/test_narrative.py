"""The sentences say what the results say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.core.metrics import Summary
from dpviz.core.number_text import numeral, percent
from dpviz.core.problem import Budget, default_delta
from dpviz.core.release import Status, Verdict
from dpviz.core.settings import Settings
from dpviz.preparation.load import load_prepared
from dpviz.report.sentences.explore import (
    competing,
    delta_note,
    distance_caption,
    epsilon_note,
    projection_caption,
    spectrum_caption,
    too_few_rows,
    verdict,
)
from dpviz.report.sentences.phrases import bias_note, budget_words, separated
from dpviz.report.sentences.precision import domain_caption, loss_share, precision_verdict
from dpviz.simulation.compare import Comparison, Result, compare
from dpviz.studies.waterfall import told


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    settings = Settings(
        table="wine",
        k=2,
        trials=8,
        epsilon=1.0,
        mechanisms=("non_private", "laplace", "gaussian", "wishart", "wishart_difference"),
    )
    return compare(load_prepared(settings), settings)


def having(result: Result, share: float, spread: float, status: Verdict | None = None) -> Result:
    """Return a result whose recoveries and shares have this mean and standard error."""
    trials = len(result.metrics["captured_share"])
    steps = np.linspace(-1, 1, trials)
    steps *= spread * math.sqrt(trials) / steps.std(ddof=1)
    shares = share + steps
    verdict_ = result.status.verdict if status is None else status
    return replace(
        result,
        metrics=result.metrics | {"captured_share": shares, "recovery": shares},
        status=Status(verdict_, "Because."),
    )


def made(
    comparison: Comparison, shares: dict[str, tuple[float, float]], **more: Verdict
) -> Comparison:
    by_key = {result.mechanism.key: result for result in comparison.results}
    results = tuple(
        having(by_key[key], *pair, status=more.get(key)) for key, pair in shares.items()
    )
    return replace(comparison, results=results)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0\u00a0%"), (0.0004, "< 0.1\u00a0%"), (0.004, "0.4\u00a0%"), (0.126, "13\u00a0%"),
        (0.5, "50\u00a0%"), (0.125, "13\u00a0%"), (0.996, "99.6\u00a0%"), (0.999, "99.9\u00a0%"),
        (0.9996, "> 99.9\u00a0%"), (0.99999, "> 99.9\u00a0%"),
        (1 - 1e-12, "100\u00a0%"), (1.0, "100\u00a0%"),
        (-0.0, "0\u00a0%"), (-0.0003, "0\u00a0%"), (-0.006, "-0.6\u00a0%"), (-0.3, "-30\u00a0%"),
    ],
)  # fmt: skip
def test_percent(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 2, "0"), (3e-7, 2, "3e-7"), (4.64e-6, 2, "4.6e-6"), (0.00062, 2, "0.00062"),
        (0.5, 3, "0.5"), (1.1619, 3, "1.16"), (953.0, 2, "950"), (271_000.0, 3, "271,000"),
        (3.3e9, 2, "3.3e9"), (-2e-5, 1, "-2e-5"),
    ],
)  # fmt: skip
def test_numeral(value: float, digits: int, text: str) -> None:
    assert numeral(value, digits) == text


@pytest.mark.parametrize(("bound", "rises"), [(0.9, True), (0.66, False), (0.3, False)])
def test_a_waterfall_that_rises_with_its_row_bound_says_why(bound: float, rises: bool) -> None:
    steps = ["everything public", "mean private", "row bound private"]
    shown = pd.DataFrame({"step": steps, "recovery": [0.9, 0.65, bound], "se": 0.01})
    text = told(shown.assign(change=shown["recovery"].diff()))
    assert text.startswith("Recovery is 90\u00a0% where everything but the rows is public, and ")
    assert ("rises with the row bound" in text) == rises
    dearest = "row bound" if bound == 0.3 else "mean"
    assert f"the dearest step is the {dearest}." in text


def test_budget_words() -> None:
    assert budget_words(Budget(0.5)) == "epsilon 0.5"
    assert budget_words(Budget(1.0, 1e-6)) == "epsilon 1 and delta 1e-6"


def test_separated_asks_for_three_standard_errors() -> None:
    def summary(mean: float, se: float) -> Summary:
        return Summary(mean, se, 0.0, 1.0)

    assert separated(summary(0.5, 0.01), summary(0.45, 0.01))
    assert not separated(summary(0.5, 0.01), summary(0.46, 0.01))
    assert not separated(summary(0.9, math.nan), summary(0.1, 0.01))


def test_refuted_mechanisms_and_baselines_do_not_compete(comparison: Comparison) -> None:
    ranked = [result.mechanism.key for result in competing(comparison.results)]
    assert set(ranked) == {"laplace", "gaussian", "wishart_difference"}
    shares = [r.metrics["captured_share"].mean() for r in competing(comparison.results)]
    assert shares == sorted(shares, reverse=True)


def test_verdict_names_the_best_and_the_next(comparison: Comparison) -> None:
    shares = {"gaussian": (0.9, 0.001), "laplace": (0.3, 0.001), "wishart_difference": (0.6, 0.001)}
    text = verdict(made(comparison, shares))
    labels = {r.mechanism.key: r.mechanism.label for r in comparison.results}
    assert f"{labels['gaussian']} recovers 90\u00a0% of what 2 components can show" in text
    assert f"next comes {labels['wishart_difference']} with 60\u00a0%" in text
    assert "cannot tell" not in text
    assert text.startswith("At epsilon 1 and delta ")


def test_verdict_says_cannot_tell_where_the_draws_do_not_separate(comparison: Comparison) -> None:
    shares = {"gaussian": (0.9, 0.05), "laplace": (0.85, 0.05), "wishart_difference": (0.1, 0.001)}
    text = verdict(made(comparison, shares))
    labels = {r.mechanism.key: r.mechanism.label for r in comparison.results}
    assert f"these draws cannot tell it from {labels['laplace']}" in text
    assert f"next comes {labels['wishart_difference']}" in text


def test_verdict_with_one_draw_tells_nothing_apart(comparison: Comparison) -> None:
    settings = replace(comparison.settings, trials=1)
    single = compare(comparison.prepared, settings)
    assert "these draws cannot tell it from" in verdict(single)


def test_verdict_calls_nothing_false_that_is_only_not_proved(comparison: Comparison) -> None:
    (one,) = [r for r in comparison.results if r.mechanism.key == "gaussian"]
    unsure = replace(one, status=Status(Verdict.UNPROVEN, "Because."))
    text = verdict(replace(comparison, results=(*comparison.results, unsure)))
    label = one.mechanism.label
    assert f"{label} is not counted: what its papers promise is not proved for what is " in text
    (false,) = [r for r in comparison.results if r.mechanism.key == "wishart"]
    assert f"{false.mechanism.label} is not counted: what its papers promise is false." in text


@dpviz.mechanism(claim="pure", release="subspace")
def by_hand(rows: Any, epsilon: float, delta: float, k: int, rng: Any) -> Any:
    return np.eye(rows.shape[1])[:, :k]


def test_an_author_of_ones_own_promises_without_a_paper(comparison: Comparison) -> None:
    (one,) = [r for r in comparison.results if r.mechanism.key == "gaussian"]
    unsure = Status(Verdict.UNPROVEN, "Because.")
    own, ours = replace(one, mechanism=by_hand(), status=unsure), replace(one, status=unsure)
    label, words = own.mechanism.label, "is not proved for what is released here."
    text = verdict(replace(comparison, results=(own, ours)))
    assert f"{label} is not counted: what its author claims {words}" in text
    assert f"{one.mechanism.label} is not counted: what its papers promise {words}" in text
    text = verdict(replace(comparison, results=(own, own)))
    assert f"{label} and {label} are not counted: what their authors claim {words}" in text


def test_verdict_does_not_count_false_claims(comparison: Comparison) -> None:
    text = verdict(comparison)
    (refuted,) = [r for r in comparison.results if r.mechanism.key == "wishart"]
    assert refuted.status.verdict is Verdict.REFUTED
    assert f"{refuted.mechanism.label} is not counted" in text
    nobody = verdict(made(comparison, {"wishart": (0.9, 0.001)}))
    assert nobody.startswith("None of the chosen mechanisms makes a claim that holds here.")
    two = made(
        comparison,
        {"wishart": (0.9, 0.001), "laplace": (0.5, 0.1)},
        wishart=Verdict.REFUTED,
        laplace=Verdict.REFUTED,
    )
    assert " are not counted" in verdict(two)


def test_verdict_for_one_component(comparison: Comparison) -> None:
    settings = replace(comparison.settings, k=1)
    assert "of what one component can show" in verdict(compare(comparison.prepared, settings))


@pytest.mark.parametrize(
    ("epsilon", "start"),
    [
        (0.05, "Below 0.1"),
        (0.1, None),
        (1.0, None),
        (5.0, None),
        (6.0, "Above 5"),
        (1e6, "Above 5"),
    ],
)
def test_epsilon_note(epsilon: float, start: str | None) -> None:
    note = epsilon_note(epsilon)
    assert (note is None) == (start is None)
    assert note is None or note.startswith(str(start))


def test_delta_note_warns_from_a_hundredth_of_1_over_n_on() -> None:
    assert delta_note(0.0, 100) == ("Delta 0: only mechanisms with a pure guarantee run.", False)
    assert delta_note(3e-7, 1797) == ("Delta 3e-7, below 0.01/n = 5.6e-6.", False)
    note, warns = delta_note(2e-4, 1797)
    assert warns
    assert "would expose somebody with probability 30\u00a0%" in note
    # the default of a small table is modest
    assert not delta_note(default_delta(178), 178)[1]
    assert too_few_rows(default_delta(178), 178) is None
    said = too_few_rows(2e-4, 1797)
    assert said is not None
    assert "1,797 rows ask for one of at most 5.6e-6" in said


def test_epsilon_note_states_the_odds() -> None:
    note = epsilon_note(10.0)
    assert note is not None
    assert "22,026" in note


def test_captions(comparison: Comparison) -> None:
    ranked = competing(comparison.results)
    near = min(ranked, key=lambda r: r.metrics["projection_distance"].mean())
    caption = distance_caption(comparison)
    assert caption.startswith(f"{near.mechanism.label} comes closest, at ")
    # 2 of 13 directions: at most sqrt(2 * 2), by chance sqrt(2k(1 - k/d)).
    assert "2.00 the farthest" in caption
    assert f"{math.sqrt(4 * (1 - 2 / 13)):.2f} is what a random one reaches" in caption
    spectrum = spectrum_caption(comparison)
    assert "out of 13" in spectrum
    assert "hides" in projection_caption(comparison)
    baseline = replace(comparison, results=comparison.results[:1])
    assert "pure chance" in distance_caption(baseline)
    assert "None of the chosen mechanisms" in spectrum_caption(replace(comparison, results=()))


def test_spectrum_caption_counts_components_that_are_found(comparison: Comparison) -> None:
    (gaussian,) = [r for r in comparison.results if r.mechanism.key == "gaussian"]
    found = comparison.components_found(gaussian)
    assert found is not None
    caption = spectrum_caption(comparison)
    assert f"{gaussian.mechanism.label} {found}" in caption
    assert "turned by less than 45 degrees" in caption
    assert "below d = 10" not in caption
    # the old rule, a threshold for a lone component, sees more than there is to be seen
    assert gaussian.edges is not None
    values = comparison.prepared.reference.eigenvalues
    assert found <= (values > gaussian.edges[1] / 2).sum()


def test_predictions_at_small_d_say_that_they_are_low() -> None:
    assert bias_note(10) == ""
    assert "below d = 10 predictions are low, by up to .045" in bias_note(9)


def test_captions_for_k_equal_to_d_and_k_1(comparison: Comparison) -> None:
    whole = compare(
        comparison.prepared, replace(comparison.settings, k=13, mechanisms=("gaussian",))
    )
    assert "all distances are zero" in distance_caption(whole)
    single = compare(comparison.prepared, replace(comparison.settings, k=1))
    assert "Each strip" in projection_caption(single)


def test_projection_caption_names_what_drowned(comparison: Comparison) -> None:
    drowned = [r for r in competing(comparison.results) if r.mechanism.key == "laplace"]
    (result,) = drowned
    lost = replace(result, angles=np.full_like(result.angles, math.radians(80)))
    kept = replace(result, angles=np.full_like(result.angles, math.radians(10)))
    assert result.mechanism.label in projection_caption(replace(comparison, results=(lost,)))
    assert "survives the noise" in projection_caption(replace(comparison, results=(kept,)))


def test_loss_share(comparison: Comparison) -> None:
    values = comparison.prepared.reference.eigenvalues
    assert loss_share(comparison) == pytest.approx(values[2:].sum() / values.sum())


def test_what_hardly_follows_the_shares_hides_no_loss_of_what_does() -> None:
    options = {
        "mechanisms": ("mvg", "directional_gaussian"),
        "domain": "box",
        "bounds": "known",
        "trials": 5,
    }
    equal = dpviz.compare("planted", **options).comparison
    for allocation, says in (
        ("binary:3,4:0.8", "and 76\u00a0% by Directional Gaussian with equal shares: what the"),
        ("binary:1,2:0.8", "against 76\u00a0% with equal shares: it pays here."),
    ):
        shared = dpviz.compare("planted", allocation=allocation, **options).comparison
        assert says in precision_verdict(shared, equal)


def test_one_favoured_direction_is_no_plural() -> None:
    options = {"mechanisms": ("directional_gaussian",), "domain": "box", "trials": 2}
    found = dpviz.compare("iris", allocation="binary:1:0.8", **options).comparison
    assert "the favoured direction has its noise divided by" in domain_caption(found)
