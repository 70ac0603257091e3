"""The documentation's gallery: one page per figure, rendered at build time from built-in data.

Each function below gives one page: its source is the code shown, its docstring the text, and its
return value the chart. No output is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import plotly.graph_objects as go

import dpviz
from dpviz.auditing import attack, exhibits
from dpviz.auditing.account import account_view
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.mechanisms import parse_variant, parse_variants
from dpviz.papers import experiment
from dpviz.papers.report import drawn
from dpviz.papers.shipped import shipped
from dpviz.report.figures import account, claims, precision
from dpviz.report.figures.reproduction import chart_figure, exhibit_rows, table_figure
from dpviz.report.figures.room import loadings_figure, map_figure
from dpviz.report.figures.theme import panels, panels_of
from dpviz.studies.compare import Compared
from dpviz.studies.precision import (
    account_table,
    gain_table,
    noise_table,
    price_table,
)

FEATURED = ("gaussian", "wishart_difference", "ppca", "analyze_gauss", "laplace", "wishart")
SHAPED = ("directional_gaussian", "gaussian", "directional_wishart_difference")


@cache
def _comparison() -> Compared:
    return dpviz.compare(
        "digits", epsilon=1, delta=1e-4, k=2, trials=30,
        mechanisms=FEATURED,
    )  # fmt: skip


@cache
def _with_shares(allocation: str = "binary:1,2:0.9") -> Compared:
    return dpviz.compare(
        "wine", domain="box", epsilon=1, delta=1e-5, k=2, trials=10,
        allocation=allocation, mechanisms=SHAPED,
    )  # fmt: skip


# Side by side ------------------------------------------------------------------------------


def spectrum() -> go.Figure:
    """Noisy eigenvalues against the true ones, one panel per mechanism.

    Bars are the true eigenvalues, the line is the median released value, and the band is the range
    of released values. A dotted line shows variance captured along directions whose eigenvalues are
    not released; the dashed line is the edge of the noise spectrum.
    """
    answer = dpviz.compare(
        "digits", epsilon=1, delta=1e-4, k=2, trials=30,
        mechanisms=FEATURED,
    )  # fmt: skip
    return answer.figure("spectrum")


def distance() -> go.Figure:
    """The distance of each simulated release's subspace from the true subspace."""
    return _comparison().figure("distance")


def projection() -> go.Figure:
    """The exact 2-D projection, then the projection an analyst would get from the first release.

    Each projection is rotated to match the true axes, which hides rotation in the released space.
    """
    return _comparison().figure("projection")


def measure() -> go.Figure:
    """One metric: its mean and the range of 95 % of simulated releases."""
    return _comparison().figure("captured_share")


def prediction() -> go.Figure:
    """Results predicted without simulation, from a number of people and a guessed spectrum."""
    answer = dpviz.predict(
        n=20_000, spectrum="power:d=40,exponent=1.2,total=0.5", epsilon=0.5, delta=1e-6, k=3,
        mechanisms=["gaussian", "wishart_difference", "laplace"],
    )  # fmt: skip
    return answer.figure("spectrum")


# Along an axis -----------------------------------------------------------------------------


def curve() -> go.Figure:
    """A metric along epsilon, with a random subspace below and exact PCA above."""
    answer = dpviz.sweep(
        "breast_cancer", over="epsilon", values="0.03:30:7", k=2, trials=15,
        mechanisms=["gaussian", "wishart_difference", "ppca", "laplace"],
    )  # fmt: skip
    return answer.figure("captured_share")


def least_epsilon() -> go.Figure:
    """The least epsilon at which each mechanism reaches a goal, and whether its claim holds."""
    answer = dpviz.least(
        "wine", recovery=0.9, k=2,
        mechanisms=["gaussian", "wishart_difference", "laplace", "wishart"],
    )  # fmt: skip
    return answer.figure()


def task() -> go.Figure:
    """The score of a classifier after a private projection, along epsilon."""
    answer = dpviz.task(
        "iris", mechanisms=["gaussian", "laplace"], trials=3, tuning="fixed", epsilons="0.1,1,10"
    )
    return answer.figure()


# Claims ------------------------------------------------------------------------------------


def audit_bounds() -> go.Figure:
    """An audit's lower bounds, beside the claimed and the exactly known values."""
    return dpviz.audit("wishart", epsilon=1.0, trials=2_000).figure()


def moving_support() -> go.Figure:
    """The share of releases that reveal their table: counted and exact."""
    return claims.support_figure(exhibits.support_table(5, 1.0, seed=0, trials=400), now=1.0)


def cone() -> go.Figure:
    """Releases at d = 2 and the cone of possible releases of the full table."""
    return claims.cone_figure(exhibits.cone_table(1.0, seed=0))


def turning() -> go.Figure:
    """The direction published for a table with and without one person."""
    return claims.turning_figure(exhibits.turning_rows(), exhibits.turning_table(1.0, seed=0))


def true_delta() -> go.Figure:
    """The true delta of classical Gaussian noise beside the claimed delta."""
    return claims.delta_figure(exhibits.delta_table(1e-5), now=1.0)


def gibbs() -> go.Figure:
    """The mean score of a sampler's chains after each sweep beside the exact mean."""
    return claims.gibbs_figure(exhibits.gibbs_table(1.0, seed=0, chains=400))


def attacker() -> go.Figure:
    """Misses against false alarms of the best membership test."""
    problem = Problem(1_000, 10, 2, Relation.REPLACE, Domain.ball(10))
    mechanism = parse_variant("gaussian")
    bound = attack.curve(mechanism, problem, Budget(1.0, 1e-6))
    return claims.attack_figure(bound, mechanism, mechanism.label)


def posterior() -> go.Figure:
    """The belief after an alarm, at each level of false alarms."""
    problem = Problem(1_000, 10, 2, Relation.REPLACE, Domain.ball(10))
    mechanism = parse_variant("gaussian")
    budget = Budget(1.0, 1e-6)
    bound = attack.attacker_curve(mechanism, problem, budget)
    limit = attack.limit_of(0.5, mechanism.spent(problem, budget))
    table = attack.attack_table(bound, 0.5)
    return claims.posterior_figure(table, 0.5, mechanism, limit)


def account_curve() -> go.Figure:
    """Delta against epsilon: the whole privacy card of one release."""
    problem = Problem(1_000, 10, 2, Relation.REPLACE, Domain.ball(10))
    view = account_view(parse_variant("gaussian"), problem, Budget(1.0, 1e-6))
    return account.curve_figure(view.curve_table())


def repeated_releases() -> go.Figure:
    """The total privacy loss of many releases of one table, by three ways of composition."""
    problem = Problem(1_000, 10, 2, Relation.REPLACE, Domain.ball(10))
    view = account_view(parse_variant("gaussian"), problem, Budget(1.0, 1e-6))
    return account.repeated_figure(view.repeated_table())


def paid_preparation() -> go.Figure:
    """The loss of recovery by each step of a private preparation."""
    return dpviz.waterfall("digits", epsilon=2.0, trials=5).figure()


# Precision ---------------------------------------------------------------------------------


def payoff() -> go.Figure:
    """Recovery with two favoured features beside recovery with equal shares."""
    study = _with_shares().comparison
    table = gain_table(study, _with_shares("uniform").comparison)
    return precision.payoff_figure(table, panels(study.results))


def noise_along() -> go.Figure:
    """The noise along each direction if two features get nine tenths of the precision."""
    study = _with_shares().comparison
    variants = [result.mechanism for result in study.results]
    table = noise_table(variants, study.prepared, study.problem, study.budget, 0)
    return precision.stds_figure(table, panels(study.results), study.prepared.columns, (1, 2))


def accounts() -> go.Figure:
    """The noise at one budget under the published and the exact accounting."""
    study = _with_shares().comparison
    variants = parse_variants(["mvg", "mvg[theorem=3,tail=tight]", "directional_gaussian"])
    table = account_table(variants, study.prepared, study.problem, study.budget, 0)
    return precision.accounts_figure(table, panels_of(variants, study.problem, study.budget))


def prices() -> go.Figure:
    """The noise along a direction against its share of the precision."""
    study = _with_shares().comparison
    variants = [result.mechanism for result in study.results]
    table = price_table(variants, study.prepared, study.problem, study.budget, 0)
    return precision.prices_figure(table, panels(study.results))


# Decide ------------------------------------------------------------------------------------


def map_of_counts() -> go.Figure:
    """The map of noisy counts that one release of a table could publish."""
    decision = dpviz.decide("iris", ceiling=25.0)
    picture = decision.map_at(decision.most)
    assert picture is not None  # At a smaller epsilon, noise would hide the map.
    return map_figure(picture)


def loadings_told() -> go.Figure:
    """Loadings of the first component, each with its range in 95 % of releases."""
    _, use = dpviz.decide("iris", ceiling=25.0, hand_out="directions").loadings
    return loadings_figure(use)


# Papers ------------------------------------------------------------------------------------


def paper_chart() -> go.Figure:
    """A figure of a paper, from the measurements that come with dpviz."""
    findings = shipped(experiment("jiang_table1"))
    assert findings is not None
    return chart_figure(findings.points, drawn(findings)[0])


def paper_table() -> go.Figure:
    """A table of a paper: its printed values, and dpviz's measurements."""
    findings = shipped(experiment("mvg_table3"))
    assert findings is not None
    return table_figure(exhibit_rows(findings.claims))


SECTIONS: dict[str, tuple[Callable[[], go.Figure], ...]] = {
    "Side by side": (spectrum, distance, projection, measure, prediction),
    "Along an axis": (curve, least_epsilon, task),
    "Claims": (
        audit_bounds, moving_support, cone, turning, true_delta, gibbs, attacker,
        posterior, account_curve, repeated_releases, paid_preparation,
    ),
    "Precision": (payoff, noise_along, accounts, prices),
    "Papers": (paper_chart, paper_table),
}  # fmt: skip


def pages() -> list[Callable[[], go.Figure]]:
    """Return every page's function, in order."""
    return [page for section in SECTIONS.values() for page in section]


def title_of(page: Callable[[], go.Figure]) -> str:
    """Return the title of a page: its name in words."""
    return page.__name__.replace("_", " ").capitalize()
