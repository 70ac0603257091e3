"""How far one person moves the upper triangle of A, for i.i.d. Gaussian noise on it."""

from __future__ import annotations

import math

from dpviz.problem import Problem, Relation


def l2_upper(problem: Problem) -> float:
    """Return the l2 sensitivity of the upper triangle of A, diagonal included.

    With ``D = v v' - w w'`` it is the maximum of ``S = (||D||_F^2 + sum_j D_jj^2)/2``, over n.

    Ball: sqrt(2) R^2/n (replace), R^2/n (zero-out). S is at most ||D||_F^2, whose maxima 2 and 1
    are attained by coordinate vectors, where D is diagonal.

    Box, replace: R^2/n, so no more than Frobenius noise would need over sqrt(2). With
    ``x = (v + w)/2`` and ``y = (v - w)/2``, ``D_ij = 2 (x_i y_j + x_j y_i)`` and
    ``|x_j| + |y_j| <= c_j``. S only grows if the signs of x and y are dropped and the sums are
    made equal to c, so let ``x = (c - u)/2, y = (c + u)/2`` with ``|u_j| <= c_j``; then
    ``D_ij = c_i c_j - u_i u_j``. Write C = sum c_j^2 = R^2, M = sum u_j^2, N = sum c_j u_j. Then
    ``||D||_F^2 = C^2 - 2 N^2 + M^2`` and ``sum D_jj^2 = sum (c_j^2 - u_j^2)^2 <= (C - M)^2``, so
    ``2 S <= C^2 + M^2 + (C - M)^2 <= 2 C^2``. The cube with even d attains it by two orthogonal
    corners.

    Cube with odd d, replace: sqrt(1 - 1/d^2) R^2/n, exact. For c = 1,
    ``S = d (d + 1)/2 - M + M^2/2 + sum u_j^4/2 - N^2 <= d (d + 1)/2 + (M^2 - M)/2 - N^2``.
    N^2 - M is linear in each u_j, so least at a corner, where it is at least 1 - d; hence
    ``N^2 >= max(0, M - d + 1)``. The bound then rises with M up to M = d, where it is d^2 - 1,
    which two corners that agree in (d + 1)/2 signs attain.

    Box, zero-out: sqrt((R^4 + sum c_j^4)/2)/n, exact, attained by a corner.
    """
    radius2 = problem.domain.radius**2
    replace = problem.relation is Relation.REPLACE
    if problem.domain.kind == "ball":
        return (math.sqrt(2) if replace else 1.0) * radius2 / problem.n
    widths = problem.domain.half_widths
    if not replace:
        return math.sqrt((radius2**2 + math.fsum(c**4 for c in widths)) / 2) / problem.n
    if problem.d % 2 == 1 and len(set(widths)) == 1:
        return math.sqrt(1 - 1 / problem.d**2) * radius2 / problem.n
    return radius2 / problem.n
