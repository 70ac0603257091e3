"""Whether an audit ticks a false claim, and whether it knows the weakest fault that it sees.

``python -m benchmarks.audits`` audits 10 sound mechanisms, each of which states its weakest fault,
and plants 50 faults around what they state: a mechanism that leaves out a part of its noise, on
another seed. It prints how many are called tight (0), and how many verdicts are not what the
stated share says but for 20 %.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from dpviz.auditing import Audit, AuditVerdict, audit, default_budget
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.mechanisms import Mechanism, parse_variant

TRIALS = 10_000
KEYS = ("gaussian", "laplace", "laplace_tight", "ppca", "eigenvector_sampling")
SHARES = (1 / 1.4, 1 / 1.2, 1.0, 1.2, 1.4)


def faulty(mechanism: Mechanism, share: float) -> Mechanism:
    """Return a mechanism of somebody else with a share of the noise, and the account of all."""
    base = type(mechanism)

    def calibrate(self: Mechanism, problem: Problem, budget: Budget) -> Calibration:
        whole = base.calibrate(self, problem, budget)
        # of a sampler the scale is a concentration
        factor = 1 / share if base.info.release == "subspace" else share
        return replace(whole, scale=whole.scale * factor)

    return type(f"Faulty{base.__name__}", (base,), {"calibrate": calibrate, "info": base.info})()


def audited(mechanism: Mechanism, epsilon: float, d: int, seed: int, *, plant: bool) -> Audit:
    """Return one audit."""
    budget = default_budget(mechanism, epsilon)
    return audit(mechanism, budget, d=d, seed=seed, trials=TRIALS, plant=plant)


def main() -> None:
    """Run and print."""
    planted = ticks = wrong = 0
    for key, epsilon in itertools.product(KEYS, (0.5, 2.0)):
        fault = audited(parse_variant(key), epsilon, 3, 0, plant=True).weakest
        if fault is None:
            print(f"{key}, epsilon {epsilon}: no fault is seen")
            continue
        refuted = []
        for seed, times in enumerate(SHARES):
            share = min(1.0, times * fault.factor)
            seen = audited(faulty(parse_variant(key), share), epsilon, 3, 100 + seed, plant=False)
            planted += 1
            ticks += seen.verdict is AuditVerdict.TIGHT
            wrong += seen.measured_refutes != (times < 1) and times != 1
            refuted.append(seen.measured_refutes)
        said = ", ".join(f"{times:.2f} {'refuted' if one else 'not'}"
                         for times, one in zip(SHARES, refuted, strict=True))  # fmt: skip
        print(
            f"{key}, epsilon {epsilon}: stated {fault.factor:.3f} ({fault.low:.3f} to "
            f"{fault.high:.3f}); at times that: {said}"
        )
    print(f"{planted} planted faults: {ticks} called tight, {wrong} not as stated within 20 %")


if __name__ == "__main__":
    main()
