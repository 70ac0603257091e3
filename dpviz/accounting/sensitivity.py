"""Proved bounds on how far one person can move a statistic.

With ``A = X'X / n`` and n public, neighbours move A by ``D / n`` where ``D = v v' - w w'`` under
replace (rows v and w both lie in the domain) and ``D = v v'`` under zero-out (w = 0, or v and w
exchanged). The domain is a ball of radius R = 1 or a box ``|x_j| <= c_j`` with half widths c,
enclosed in the ball of radius ``R = sqrt(sum c_j^2)``. The zero row belongs to the ball and the
box, so a zero-out bound is never above the replace bound.

Two facts are used. D has at most one positive and one negative eigenvalue: ``D = s p p' - t q q'``
with p, q orthonormal and ``0 <= s, t <= R^2``, since ``p'Dp <= (p'v)^2 <= R^2`` (F1). With ``x = (v
+ w)/2`` and ``y = (v - w)/2``, ``D = 2 (x y' + y x')`` and on a box ``|x_j| + |y_j| = max(|v_j|,
|w_j|) <= c_j`` (F2).

Sensitivities of A contain the factor 1/n; sensitivities of rows do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpviz.accounting import boxes
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.problem import Domain, Problem, Relation


def frobenius(problem: Problem) -> float:
    """Return the Frobenius sensitivity of A: sqrt(2) R^2/n (replace), R^2/n (zero-out).

    Proof: ``||D||_F^2 = |v|^4 + |w|^4 - 2 (v'w)^2``, at most 2 R^4, and R^4 with w = 0. Orthogonal
    rows of length R attain this bound, so it is tight on the ball, under zero-out, and on the cube
    with even d. On the cube with odd d two corners are never orthogonal, and the value is smaller
    by the factor sqrt(1 - 1/d^2). For other boxes see `dpviz.accounting.boxes`.
    """
    if _is_replaced_on_box(problem):
        return _of_half_widths(problem, boxes.frobenius_reach, math.sqrt(2)) / problem.n
    return _pick(problem, math.sqrt(2), 1.0) * _radius_squared(problem) / problem.n


def nuclear(problem: Problem) -> float:
    """Return the nuclear-norm sensitivity of A: 2 R^2/n (replace), R^2/n (zero-out).

    Proof: the triangle inequality, ``||v v'||_nuc = |v|^2``. The value is tight in the same cases
    as `frobenius`, and smaller by the same factor on the cube with odd d: 5.66 and not 6 at d = 3.
    """
    if _is_replaced_on_box(problem):
        return _of_half_widths(problem, boxes.nuclear_reach, 2.0) / problem.n
    return _pick(problem, 2.0, 1.0) * _radius_squared(problem) / problem.n


def spectral(problem: Problem) -> float:
    """Return the spectral-norm sensitivity of A: R^2/n under both relations.

    Proof: fact F1. A row of length R against the zero row attains the bound, so it is always tight.
    """
    return _radius_squared(problem) / problem.n


def l1_entries(problem: Problem) -> float:
    """Return the l1 sensitivity of A over all d^2 entries.

    Ball: sqrt(2) d/n (replace), d/n (zero-out). By Cauchy and Schwarz the l1 norm of d^2 numbers
    is at most d times their l2 norm, which is `frobenius`. Zero-out is attained by
    (1, ..., 1)/sqrt(d). Replace is attained for even d (x_j, y_j proportional to the cosine and
    sine of pi/8 for half of the features and of 5 pi/8 for the others), nearly for odd d.

    Box: (sum c_j)^2/n under both relations, never above the bound of the enclosing ball.
    Zero-out: the norm is (sum |v_j|)^2. Replace: fact F2 bounds it by
    ``4 sum|x_j| sum|y_j|`` with ``sum|x_j| + sum|y_j| <= sum c_j``, so by (sum c_j)^2.
    A corner against the zero row attains it: always tight.
    """
    if problem.domain.kind == "ball":
        return _pick(problem, math.sqrt(2), 1.0) * problem.d / problem.n
    return math.fsum(problem.domain.half_widths) ** 2 / problem.n


def l1_upper(problem: Problem) -> float:
    """Return the l1 sensitivity of the upper triangle of A, diagonal included.

    Write S for n times this value; S = (L + T)/2 with L the l1 norm of all entries of D and T the
    l1 norm of its diagonal, ``T = sum |v_j^2 - w_j^2|``.

    Ball, zero-out: (d + 1)/2, exact: L <= d and T = |v|^2 <= 1, both attained by
    (1, ..., 1)/sqrt(d).

    Ball, replace: min(d/sqrt(2) + 1, sqrt((d^2 + 3 d)/2)). First bound: L <= sqrt(2) d
    (see `l1_entries`) and T <= |v|^2 + |w|^2 <= 2. Second bound, Cauchy and Schwarz:
    S is the inner product of (|D_jj|, sqrt(2) |D_ij|) over j and i < j, whose l2 norm is
    ||D||_F <= sqrt(2), with weights 1 (d times) and 1/sqrt(2) (d (d - 1)/2 times), whose squares
    sum to d + d (d - 1)/4 = (d^2 + 3 d)/4. The second bound is the smaller up to d = 11. The bound
    is exact at d = 2 (sqrt 5). At d = 3, 4 and 6 numerical optima are 2.872, 3.606 and 5.000,
    against bounds of 3, 3.742 and 5.196.

    Box: ((sum c_j)^2 + sum c_j^2)/2 under both relations, exact: L <= (sum c_j)^2 (see
    `l1_entries`) and T <= sum c_j^2, both attained by a corner against the zero row.
    """
    d = problem.d
    if problem.domain.kind != "ball":
        widths = problem.domain.half_widths
        return (math.fsum(widths) ** 2 + math.fsum(c * c for c in widths)) / (2 * problem.n)
    replace = min(d / math.sqrt(2) + 1, math.sqrt((d * d + 3 * d) / 2))
    return _pick(problem, replace, (d + 1) / 2) / problem.n


def l1_upper_attained(problem: Problem) -> bool:
    """Return whether `l1_upper` is the true sensitivity and not only a bound.

    The bound is attained under zero-out, on the box, and on the ball for d = 2. On the ball under
    replace a numerical search stays up to a few per cent below the bound for d >= 3.
    """
    return problem.relation is Relation.ZERO_OUT or problem.domain.kind == "box" or problem.d == 2


def l2_upper(problem: Problem) -> float:
    """Return the l2 sensitivity of the upper triangle of A, diagonal included.

    The value is ``sqrt(max S)/n`` with ``D = vv' - ww'`` and ``S = (||D||_F^2 + sum_j D_jj^2)/2``.

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


def l2_upper_attained(problem: Problem) -> bool:
    """Return whether `l2_upper` is the true sensitivity: not known on boxes that are not cubes."""
    alike = len(set(problem.domain.half_widths)) <= 1
    return problem.relation is Relation.ZERO_OUT or alike


def frobenius_attained(problem: Problem) -> bool:
    """Return whether `frobenius` is the true sensitivity; on non-cube boxes it is only a bound."""
    widths = problem.domain.half_widths
    if problem.relation is Relation.ZERO_OUT or len(set(widths)) <= 1:
        return True
    return boxes.frobenius_reach(np.square(widths)).attained


def nuclear_attained(problem: Problem) -> bool:
    """Return whether `nuclear` is the true value; on boxes that are not cubes it is a bound."""
    widths = problem.domain.half_widths
    if problem.relation is Relation.ZERO_OUT or len(set(widths)) <= 1:
        return True
    return boxes.nuclear_reach(np.square(widths)).attained


def projected_frobenius(problem: Problem, columns: int) -> float:
    """Return the Frobenius sensitivity of A Q for any fixed orthonormal Q of ``columns`` columns.

    R^2/n times min(sqrt(columns), sqrt(2)) (replace) or 1 (zero-out). Proof: ``||D Q||_F^2 = tr(Q'
    D^2 Q)`` is at most the sum of the largest ``columns`` eigenvalues of D^2, which by fact F1 are
    at most R^4, R^4, 0, ... The value is tight on the ball.

    Raises
    ------
    InvalidSetting
        If columns is not from 1 to d.
    """
    if not (1 <= columns <= problem.d):
        raise InvalidSetting("columns", f"a whole number from 1 to {problem.d}", columns)
    factor = _pick(problem, math.sqrt(min(columns, 2)), 1.0)
    return factor * _radius_squared(problem) / problem.n


# --- rows (identity query) --------------------------------------------------------------------


def rows_l2(problem: Problem) -> float:
    """Return the l2 sensitivity of the table itself: 2 R (replace), R (zero-out); tight.

    Opposite rows of length R attain the bound.
    """
    return _pick(problem, 2.0, 1.0) * problem.domain.radius


def rows_l1(problem: Problem) -> float:
    """Return the l1 sensitivity of the table itself, tight.

    Ball: 2 sqrt(d) (replace), sqrt(d) (zero-out), since |x|_1 <= sqrt(d) |x|_2. Box: 2 sum c_j and
    sum c_j. Opposite rows along a diagonal attain both values.
    """
    if problem.domain.kind == "ball":
        most = math.sqrt(problem.d)
    else:
        most = math.fsum(problem.domain.half_widths)
    return _pick(problem, 2.0, 1.0) * most


# --- shaped noise -----------------------------------------------------------------------------


def reaches(domain: Domain, basis: FloatArray) -> FloatArray:
    """Return how far the domain reaches along each direction: max |w_j'x|.

    1 on the ball; sum_i c_i |w_ij| on the box (attained at a corner, one per direction).

    Parameters
    ----------
    domain : Domain
    basis : ndarray of shape (d, d)
        Basis with orthonormal columns w_j.

    Returns
    -------
    ndarray of shape (d,)
    """
    _check_basis(domain.d, basis)
    if domain.kind == "ball":
        return np.ones(domain.d)
    reach: FloatArray = np.asarray(domain.half_widths) @ np.abs(basis)
    return reach


def mahalanobis(
    problem: Problem, basis: FloatArray, variances: FloatArray, reach: FloatArray | None = None
) -> float:
    """Return the Mahalanobis sensitivity max ||S^-1/2 D S^-1/2||_F / n for S = W diag(s) W'.

    The result is the noise-to-signal number mu of A + S^1/2 G S^1/2, G symmetric with diagonal N(0,
    1) and off-diagonal N(0, 1/2).

    Let q_1 >= q_2 be the two largest 1/s_j and M an upper bound of max v'S^-1 v: q_1 on the ball;
    on the box the smaller of ``sum_j reach_j^2/s_j`` (each term at its own maximum; equality when W
    is the standard basis) and R^2 q_1.

    Zero-out: M/n, since ``||S^-1/2 v v' S^-1/2||_F = v'S^-1 v``. The value is tight on the ball.

    Replace, ball: sqrt(q_1^2 + q_2^2)/n, tight. By fact F1, with orthonormal p and q,
    ``||S^-1/2 D S^-1/2||_F^2 = s^2 (p'S^-1p)^2 + t^2 (q'S^-1q)^2 - 2 s t (p'S^-1q)^2`` is at most
    R^4 (a^2 + b^2) with a, b <= q_1 and a + b <= q_1 + q_2 (Ky Fan); a convex function, largest
    at the vertex (q_1, q_2). Rows along the two directions attain it.

    Replace, box, W the standard basis or S a multiple of I: exact, from `dpviz.accounting.boxes`,
    between M/n and sqrt(2) M/n. In other bases the smaller of sqrt(2) M/n (as in `frobenius`, for
    S^-1/2 v and S^-1/2 w) and the bound R^2 sqrt(q_1^2 + q_2^2)/n of the enclosing ball.
    `mahalanobis_attained` tells if the value is exact.

    Parameters
    ----------
    problem : Problem
    basis : ndarray of shape (d, d)
        Basis with orthonormal columns w_j.
    variances : ndarray of shape (d,)
        Eigenvalues s_j > 0 of S, in units of A; s_j is also the std of the noise entry w_j'N w_j.
    reach : ndarray of shape (d,), optional
        Result of `reaches` for the basis, if already known.

    Raises
    ------
    InvalidSetting
        If shapes disagree, the basis is not orthonormal or a variance is not above 0.
    """
    first, second = _two_largest_inverses(problem, variances)
    shape = _shape_reach(problem, basis, variances, first, reach)
    if problem.relation is Relation.ZERO_OUT:
        return shape / problem.n
    if problem.domain.kind == "box" and _by_feature(problem, basis, variances):
        return boxes.frobenius_reach(_box_weights(problem, variances)).value / problem.n
    ball = math.hypot(first, second) * _radius_squared(problem)
    return min(ball, math.sqrt(2) * shape) / problem.n


def mahalanobis_attained(problem: Problem, basis: FloatArray, variances: FloatArray) -> bool:
    """Return whether `mahalanobis` is the true sensitivity and not only a bound."""
    return _shaped_attained(problem, basis, variances, boxes.frobenius_reach)


def mahalanobis_nuclear(
    problem: Problem, basis: FloatArray, scales: FloatArray, reach: FloatArray | None = None
) -> float:
    """Return max ||C^-1/2 D C^-1/2||_nuc / n for C = W diag(c) W'.

    Half of it is the pure epsilon of A + W1 - W2 with independent Wishart_d(d + 1, C) matrices.

    With q_1, q_2 and M as in `mahalanobis` (for C). Zero-out: M/n. Replace, ball: (q_1 + q_2)/n,
    tight: by fact F1 and the triangle inequality the norm is at most ``R^2 (p'C^-1p + q'C^-1q)``,
    which Ky Fan bounds. Replace, box: exact in the standard basis, as in `mahalanobis`; otherwise
    the smaller of 2 M/n and the bound for the enclosing ball.

    Parameters and errors are as in `mahalanobis`.
    """
    first, second = _two_largest_inverses(problem, scales)
    shape = _shape_reach(problem, basis, scales, first, reach)
    if problem.relation is Relation.ZERO_OUT:
        return shape / problem.n
    if problem.domain.kind == "box" and _by_feature(problem, basis, scales):
        return boxes.nuclear_reach(_box_weights(problem, scales)).value / problem.n
    return min((first + second) * _radius_squared(problem), 2 * shape) / problem.n


def mahalanobis_nuclear_attained(problem: Problem, basis: FloatArray, scales: FloatArray) -> bool:
    """Return whether `mahalanobis_nuclear` is the true value and not only a bound."""
    return _shaped_attained(problem, basis, scales, boxes.nuclear_reach)


def rows_mahalanobis(problem: Problem, basis: FloatArray, variances: FloatArray) -> float:
    """Return the Mahalanobis sensitivity of the table itself, max |S^-1/2 (v - w)|.

    2 sqrt(M) (replace) or sqrt(M) (zero-out) with M as in `mahalanobis`: opposite rows double the
    length. Tight on the ball, and on the box when W is the standard basis. ``variances`` are the
    noise variances along each direction, in squared units of the rows.
    """
    first, _ = _two_largest_inverses(problem, variances)
    shape = _shape_reach(problem, basis, variances, first)
    return _pick(problem, 2.0, 1.0) * math.sqrt(shape)


# --- shared -----------------------------------------------------------------------------------


def _pick(problem: Problem, replace: float, zero_out: float) -> float:
    return replace if problem.relation is Relation.REPLACE else zero_out


def _radius_squared(problem: Problem) -> float:
    domain = problem.domain
    # Avoid radius**2: squaring the rounded square root of d does not give d exactly.
    return 1.0 if domain.kind == "ball" else math.fsum(c * c for c in domain.half_widths)


def _is_replaced_on_box(problem: Problem) -> bool:
    return problem.relation is Relation.REPLACE and problem.domain.kind == "box"


def _of_half_widths(
    problem: Problem, reach: Callable[[FloatArray], boxes.BoxReach], orthogonal: float
) -> float:
    """Return a norm of D on a box; ``orthogonal`` is the norm, over R^2, for orthogonal corners.

    Two corners of the cube can agree in d/2 places or nearly so, so |v'w| is 0 or 1.
    """
    widths = problem.domain.half_widths
    if len(set(widths)) > 1:
        return reach(np.square(widths)).value
    short = math.sqrt(1 - 1 / problem.d**2) if problem.d % 2 == 1 else 1.0
    return orthogonal * short * _radius_squared(problem)


def _by_feature(problem: Problem, basis: FloatArray, variances: FloatArray) -> bool:
    """Return whether the noise shape is diagonal in the features."""
    return bool(np.ptp(variances) == 0) or np.array_equal(basis, np.eye(problem.d))


def _box_weights(problem: Problem, variances: FloatArray) -> FloatArray:
    weights: FloatArray = np.square(problem.domain.half_widths) / variances
    return weights


def _shaped_attained(
    problem: Problem,
    basis: FloatArray,
    variances: FloatArray,
    reach: Callable[[FloatArray], boxes.BoxReach],
) -> bool:
    if problem.domain.kind == "ball":
        return True
    if not _by_feature(problem, basis, variances):
        return False
    if problem.relation is Relation.ZERO_OUT:
        return True
    return reach(_box_weights(problem, variances)).attained


def _two_largest_inverses(problem: Problem, variances: FloatArray) -> tuple[float, float]:
    if variances.shape != (problem.d,):
        raise InvalidSetting("variances", f"of shape ({problem.d},)", variances.shape)
    if not bool(np.all((variances > 0) & np.isfinite(variances))):
        raise InvalidSetting("variances", "finite and above 0", "other numbers")
    smallest = np.partition(variances, 1)[:2]
    return 1 / float(smallest[0]), 1 / float(smallest[1])


def _shape_reach(
    problem: Problem,
    basis: FloatArray,
    variances: FloatArray,
    largest: float,
    reach: FloatArray | None = None,
) -> float:
    """Return the bound M of max v'S^-1 v over the domain."""
    if reach is None:
        reach = reaches(problem.domain, basis)
    if problem.domain.kind == "ball":
        return largest
    return min(math.fsum(reach**2 / variances), largest * _radius_squared(problem))


def _check_basis(d: int, basis: FloatArray) -> None:
    if basis.shape != (d, d):
        raise InvalidSetting("basis", f"of shape ({d}, {d})", basis.shape)
    identity = np.eye(d)
    if np.array_equal(basis, identity):  # For 300 features, the product takes as long as sampling.
        return
    if not np.abs(basis.T @ basis - identity).max() <= 1e-8:  # This condition also catches NaN.
        raise InvalidSetting("basis", "a matrix with orthonormal columns", "another matrix")
