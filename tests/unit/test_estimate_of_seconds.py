"""How long a comparison will take is said from its first draws, which are not drawn again."""

from __future__ import annotations

from dpviz.core.settings import Settings
from dpviz.datasets import load
from dpviz.preparation.bounding import prepare
from dpviz.simulation.compare import compare


def test_the_results_are_those_without_a_forecast() -> None:
    settings = Settings(table="digits", trials=300, mechanisms=("gaussian", "ppca"))
    prepared = prepare(load("digits"), settings)
    told: list[float] = []
    ahead = compare(prepared, settings, on_estimate=told.append)
    plain = compare(prepared, settings)
    assert len(told) == 1
    assert told[0] > 0
    for one, two in zip(ahead.results, plain.results, strict=True):
        assert one.metrics.keys() == two.metrics.keys()
        for name, values in one.metrics.items():
            assert values.tobytes() == two.metrics[name].tobytes()
        assert one.components.tobytes() == two.components.tobytes()
