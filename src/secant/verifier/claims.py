"""Releases that no plan describes: statistics of one column, and functions whose sensitivity was sampled.

In: the document of a certificate. Out: what the noise loses at least, or Wrong, or NotKnown. How far a statistic moves
is worked out here once more from its public facts; whether the values are what they are said to be is in no record.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, lgamma, log, log1p, sqrt
from typing import Any

from secant.verifier.noise import CLOSE, Paid
from secant.verifier.plans import NotKnown, Wrong

ALIKE = {"l1": 0, "l2": 1, "linf": 2}
"""A size in a norm is at least the size in those after it."""


def lost(certificate: dict[str, Any]) -> Paid:
    """Give what a statistic or a black box loses at least."""
    if certificate["kind"] not in ("statistic", "black box"):
        raise NotKnown(f"releases of this kind are not checked here: {certificate['kind']}")
    facts = {key: _read(value) for key, value in certificate["facts"].items()}
    if certificate["kind"] == "statistic":
        return _statistic(certificate["name"], facts, certificate["noise"])
    return _black_box(facts, certificate["noise"])


def _read(value: Any) -> Any:
    return Fraction(value["fraction"]) if isinstance(value, dict) and "fraction" in value else value


def _positive(noise: dict[str, str], name: str) -> Fraction:
    size = Fraction(noise[name])
    if size <= 0:
        raise Wrong("the noise has no size")
    return size


# ── statistics ───────────────────────────────────────────────────────────────────────────────────


def _statistic(name: str, facts: dict[str, Any], noise: dict[str, str]) -> Paid:
    if facts["in proportion"]:
        raise NotKnown("units that give different amounts are not checked here")
    if facts["neighbors"] not in ("add-remove", "replace"):
        raise Wrong("neighbors are of no known kind")
    replaced = facts["neighbors"] == "replace"
    if noise["kind"] == "choice":
        return Paid(_positive(noise, "sharpness") * _apart(facts, replaced))
    if noise["kind"] == "laplace":
        return Paid(_moves(name, facts, replaced) / _positive(noise, "size"))
    if noise["kind"] == "normal" and name in ("covariance", "regression"):
        return Paid(rho=_moments(facts, replaced)[1] / (2 * _positive(noise, "size") ** 2))
    raise NotKnown(f"{name} with noise of this kind is not checked here: {noise['kind']}")


def _apart(facts: dict[str, Any], replaced: bool) -> Fraction:
    """Give how far one value moves the scores of two points apart, scores counted in parts of a row as q is."""
    q = facts["q"]
    if q is None:
        raise NotKnown("a choice of something else than a rank is not checked here")
    q = Fraction(q)
    if not 0 <= q <= 1:
        raise Wrong("a rank lies between 0 and 1")
    if q in (0, 1):
        return Fraction(1)  # scores count the rows beyond a point: all of them move one way
    return 2 * q.denominator * (Fraction(1) if replaced else max(q, 1 - q))


def _moves(name: str, facts: dict[str, Any], replaced: bool) -> Fraction:
    """Give how far one value moves a statistic, in the unit that its noise is in."""
    if name == "count":
        return Fraction(1)
    if name == "histogram":
        return Fraction(2 if replaced else 1)
    if name == "sum":
        low, high = Fraction(facts["low"]), Fraction(facts["high"])
        return high - low if replaced else max(abs(low), abs(high))
    if name in ("covariance", "regression"):
        return _moments(facts, replaced)[0]
    if facts.get("q") is not None:
        return Fraction(facts["top"])  # from one end of the range to the other
    if name == "mean" and replaced and facts["n"]:
        return Fraction(facts["top"], int(facts["n"]))
    raise NotKnown(f"how far one value moves {name} is not known here")


def _moments(facts: dict[str, Any], replaced: bool) -> tuple[Fraction, Fraction]:
    """Give how far one row of columns between -1 and 1 moves sums and products: in l1, and squared in l2."""
    columns = int(facts["columns"])
    mixed = columns * (columns - 1) // 2
    if replaced:  # sums and mixed products by 2, squares by 1; the number of rows is public
        return Fraction(2 * columns + 2 * mixed + columns), Fraction(
            4 * columns + 4 * mixed + columns
        )
    return Fraction(1 + 2 * columns + mixed), Fraction(1 + 2 * columns + mixed)


# ── black boxes ──────────────────────────────────────────────────────────────────────────────────


def _black_box(facts: dict[str, Any], noise: dict[str, str]) -> Paid:
    """Check how the sensitivity was sampled, then the noise against it."""
    _check_design(facts)
    norm = {"laplace": "l1", "normal": "l2", "choice": "linf"}.get(noise["kind"])
    if norm is None:
        raise NotKnown(f"noise of this kind is not checked here: {noise['kind']}")
    if facts["norm"] not in ALIKE or ALIKE[facts["norm"]] > ALIKE[norm]:
        raise NotKnown(f"a sensitivity in {facts['norm']} for noise in {norm} is not checked here")
    moves = Fraction(facts["sensitivity"])
    if moves <= 0:
        raise Wrong("the sampled sensitivity is zero")
    if noise["kind"] == "laplace":
        return Paid(moves / _positive(noise, "size"))
    if noise["kind"] == "normal":
        return Paid(rho=moves**2 / (2 * _positive(noise, "size") ** 2))
    return Paid(2 * moves * _positive(noise, "sharpness"))


def _check_design(facts: dict[str, Any]) -> None:
    """Check that the k-th of m sampled distances misses a share of gamma at most, by the theorem that is named."""
    m, k = int(facts["samples"]), int(facts["order"])
    gamma, missed = Fraction(facts["gamma"]), Fraction(facts["missed"])
    unlucky = Fraction(facts["unlucky"])
    if not 1 <= k <= m or not 0 < missed < 1 or not 0 <= unlucky < 1:
        raise Wrong("the design of the samples does not fit together")
    if facts["method"] == "exchangeability":
        share, holds = missed, k >= (1 - missed) * (m + 1)
    elif facts["method"] == "binomial":
        share = 1 - (1 - missed) * (1 - unlucky)
        holds = _tail(m, k, float(1 - missed)) <= float(unlucky) * (1 + CLOSE)
    elif facts["method"] == "dkw":
        band = float(unlucky) + sqrt(-log(unlucky) / (2 * m)) if unlucky else 1.0
        share, holds = missed, k >= m * (1 - float(missed) + band) * (1 - CLOSE)
    else:
        raise NotKnown(f"samples by {facts['method']} are not checked here")
    if not holds:
        raise Wrong(f"number {k} of {m} samples misses more than a share of {float(missed):.4g}")
    if share > gamma:
        raise Wrong(f"a share of {float(share):.4g} may be missed, and {float(gamma):.4g} is said")


def _tail(m: int, k: int, p: float) -> float:
    """Give P(Bin(m, p) >= k)."""
    total = 0.0
    for i in range(k, m + 1):
        ways = lgamma(m + 1) - lgamma(i + 1) - lgamma(m - i + 1)
        total += exp(ways + i * log(p) + (m - i) * log1p(-p))
    return total
