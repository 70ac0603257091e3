"""A comparison's duration is estimated from its first releases, which are not repeated."""

from __future__ import annotations

from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.preparation.bounding import prepare
from dpviz.simulation.compare import compare


def test_the_results_are_those_without_a_forecast() -> None:
    settings = Settings(table="digits", trials=300, mechanisms=("gaussian", "ppca"))
    table = prepare(load("digits"), settings)
    estimates: list[float] = []
    ahead = compare(table, settings, on_estimate=estimates.append)
    plain = compare(table, settings)
    assert len(estimates) == 1
    assert estimates[0] > 0
    for one, two in zip(ahead.results, plain.results, strict=True):
        assert one.metrics.keys() == two.metrics.keys()
        for name, values in one.metrics.items():
            assert values.tobytes() == two.metrics[name].tobytes()
        assert one.components.tobytes() == two.components.tobytes()
