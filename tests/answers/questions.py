"""The questions whose answers are stored: each study on six tables, in various settings.

Questions name their mechanisms, so new mechanisms change no answer. Tables are small.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CLINIC = str(HERE / "clinic.csv")
PLAN = "plan:n=1e5,spectrum=power:d=20,exponent=1.5,total=0.5"
TABLES: dict[str, dict[str, Any]] = {
    "iris": {"table": "iris"},
    "wine": {"table": "wine"},
    "digits": {"table": "digits"},
    "waveform40": {"table": "waveform40"},
    "planted": {"table": "planted"},
    "clinic": {"table": CLINIC, "label": "outcome", "leave_out": "pid"},
}

FEW = ["gaussian", "wishart_difference"]
MATRIX = [*FEW, "laplace", "analyze_gauss", "ppca", "wishart", "mvg[theorem=3]"]
PURE = ["laplace_tight", "knorm", "laplace_output", "wishart", "pure_funnel", "non_private"]
PRIVATE = {"center": "private", "scale": "private", "row_bound": "private:0.9", "bounds": "max"}


def _questions() -> dict[str, tuple[str, dict[str, Any]]]:
    questions: dict[str, tuple[str, dict[str, Any]]] = {}

    def ask(name: str, study: str, **options: Any) -> None:
        questions[name] = (study, options)

    for name, table in TABLES.items():
        ask(f"compare-{name}", "compare", **table, trials=4, mechanisms=MATRIX)
        pure = {"epsilon": 0.5, "delta": 0, "k": 1, "relation": "zero-out"}
        ask(f"compare-{name}-pure", "compare", **table, **pure, trials=3, mechanisms=PURE)
        ask(
            f"compare-{name}-private", "compare", **table, **PRIVATE, epsilon=3, trials=3,
            mechanisms=["gaussian", "funnel"],
        )  # fmt: skip
        ask(f"sweep-{name}", "sweep", **table, values="0.1:10:3", trials=2, mechanisms=FEW)
        ask(
            f"sweep-{name}-k", "sweep", **table, over=("k", "delta"), values=("1,2", "1e-8,1e-5"),
            trials=2, mechanisms="gaussian",
        )  # fmt: skip
        ask(
            f"least-{name}", "least", **table, recovery=0.9, k=1, mechanisms=["gaussian", "laplace"]
        )
        ask(f"decide-{name}", "decide", **table)
        ask(f"predict-{name}", "predict", **table, mechanisms=FEW)
        ask(f"waterfall-{name}", "waterfall", **table, k=1, trials=3)
        picture = {"picture": 0.3, "trials": 3, "mechanisms": "gaussian"}
        if name != "clinic":  # A user's own file gets fresh noise, which is not repeatable.
            ask(f"published-{name}", "published", **table, **picture)
    for name in ("iris", "wine", "clinic"):
        ask(f"board-{name}", "board", **TABLES[name], trials=3, mechanisms=FEW)
    box = {"domain": "box", "bounds": "max", "post": "free", "allocation": "binary:1:0.8"}
    ask(
        "compare-box", "compare", **TABLES["clinic"], **box, trials=4,
        mechanisms=["gaussian", "directional_gaussian", "data_laplace", "laplace"],
    )  # fmt: skip
    ask("compare-plan", "compare", table=PLAN, trials=4, mechanisms=FEW)
    ask("predict-plan", "predict", table=PLAN, mechanisms=FEW)
    ask("least-n", "least", table="iris", over="n", recovery=0.9, k=1, mechanisms="gaussian")
    choices = {"survive": "75", "delta_allowed": "no", "hand_out": "directions", "ceiling": 25}
    ask("decide-pure", "decide", table="wine", **choices)
    ask("published-ellipses", "published", table="iris", **picture, picture_form="ellipses")
    for mechanism in ("gaussian", "knorm", "ppca", "noisy_power"):
        ask(f"account-{mechanism}", "account", mechanism=mechanism)
    ask("account-private", "account", row_bound="private:0.9", releases="1,10")
    ask("audit-refuted", "audit", mechanism="wishart", trials=500)
    ask("audit-holds", "audit", mechanism="gaussian", trials=500)
    ask("claims", "claims", mechanisms=("wishart", "gaussian", "mvg"), trials=400)
    ask("task", "task", table="iris", learner="k_means", epsilons="1", mechanisms="gaussian")
    ask("schema-clinic", "schema", table=CLINIC)
    ask("schema-iris", "schema", table="iris")
    ask("mechanisms", "list_mechanisms")
    ask("datasets", "list_datasets")
    ask("papers", "reproduce")
    return questions


QUESTIONS = _questions()
"""Name of each stored answer, with the study and options of the question."""
