"""Noise against bounds, and charges against noise. What a law loses is worked out here once more.

In: the noise of a release, in whole steps, and bounds. Out: what each protection pays at least: epsilon of pure laws,
rho of normal noise, delta of keys that are chosen. Exact where it can be; floats are compared with a tiny margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import erfc, exp, expm1, log, log1p, sqrt
from typing import Any

from secant.verifier.plans import NotKnown, Wrong

CLOSE = 1e-9
"""Relative margin for what is computed in floats."""
ROUGHEST = 128.0
"""The largest beta at which the gain of a jump is worked out."""


@dataclass(frozen=True, slots=True)
class Paid:
    """What a protection pays at least."""

    pure: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    keys: Fraction = Fraction(0)

    def plus(self, other: Paid) -> Paid:
        """Add what further noise costs."""
        return Paid(self.pure + other.pure, self.rho + other.rho, self.keys + other.keys)


def price_of(
    column: str,
    noise: dict[str, Any],
    certificate: dict[str, Any],
    squared: Fraction | None,
    span: Fraction = Fraction(1),
    *,
    extreme: bool = False,
) -> Paid:
    """Give what the noise of one measure costs a protection by its own bound.

    `squared` is the squared length of its move, where it is less than its size squared; `span` says how far apart one
    row moves the scores of two points, where one is chosen.
    """
    bound = certificate["bounds"][column]
    kind = noise["kind"]
    if bound["kind"] == "global" and not Fraction(bound["value"]):
        return Paid()
    if kind == "none":
        raise Wrong(f"{column} moves, and has no noise")
    if kind == "choice":
        return _choice(column, noise, bound, span, extreme)
    if kind == "race":
        limits, sizes = [Fraction(x) for x in bound["limits"]], noise["sizes"]
        if bound["kind"] != "limits" or not bound["race"] or len(limits) != len(sizes):
            raise Wrong(f"the noise of {column} is for other limits than its bound")
        return Paid(sum((x / Fraction(s) for x, s in zip(limits, sizes, strict=True)), Fraction(0)))
    if kind == "surveyed":
        return _surveyed(column, noise, bound)
    if kind not in ("plain", "limited", "blocks"):
        raise NotKnown(f"noise of this kind is not checked here: {kind}")
    size = Fraction(noise["size"])
    if size <= 0:
        raise Wrong(f"the noise of {column} has no size")
    choosing = Fraction(0)
    if kind == "limited":
        if bound["kind"] != "limits" or int(noise["limit"]) != int(bound["limits"][-1]):
            raise Wrong(f"the noise of {column} is for another limit than its bound")
        length = Fraction(int(bound["limits"][-1]))
        choosing = Fraction(noise["choosing"])
        if (len(bound["limits"]) > 1) != (choosing > 0):
            raise Wrong(f"choosing a limit of {column} is not paid for")
    else:
        if bound["kind"] != "global":
            raise Wrong(f"the noise of {column} is for a public bound, and it has none")
        length = Fraction(bound["value"])
    square = length**2 if squared is None else squared
    if kind == "blocks":
        length, square = _blocks(column, noise, length, square)
    if noise["law"] == "laplace":
        return Paid(choosing + length / size)
    if noise["law"] == "normal":
        return Paid(choosing, square / (2 * size**2))
    raise NotKnown(f"noise of this law is not checked here: {noise['law']}")


def _choice(
    column: str, noise: dict[str, Any], bound: dict[str, Any], span: Fraction, extreme: bool
) -> Paid:
    """A point is chosen, then how far its ends lie: their scores move apart as much, but for extremes twice."""
    twice = 2 if extreme else 1
    sharpness = Fraction(noise["sharpness"]) + twice * Fraction(noise.get("ends", 0))
    choosing = Fraction(noise.get("choosing", 0))
    if bound["kind"] == "global":
        if "choosing" in noise:
            raise Wrong(f"the points of {column} are chosen by weights that have no limit")
        return Paid(sharpness * Fraction(bound["value"]))
    if bound["kind"] != "limits":
        raise NotKnown(f"points chosen under a bound of this kind are not checked here: {column}")
    if (len(bound["limits"]) > 1) != (choosing > 0):
        raise Wrong(f"choosing a limit of {column} is not paid for")
    return Paid(choosing + sharpness * span * int(bound["limits"][-1]))


def _blocks(
    column: str, noise: dict[str, Any], length: Fraction, square: Fraction
) -> tuple[Fraction, Fraction]:
    """Every level adds up all steps in blocks: it moves as far as they do, and blocks lengthen a move by their root."""
    branching, levels = int(noise["branching"]), int(noise["levels"])
    if branching < 2 or levels < 1:
        raise Wrong(f"the blocks of {column} are none")
    squares = (min(length**2, branching**level * square) for level in range(levels))
    return levels * length, sum(squares, Fraction(0))


def _surveyed(column: str, noise: dict[str, Any], bound: dict[str, Any]) -> Paid:
    """Noise (bound / rate) V in each group, V of the optimal law for epsilon / beta; neighbors are one jump apart."""
    if bound["kind"] != "surveyed" or noise["law"] != "optimal":
        raise NotKnown(f"noise of this law is not checked here: {noise['law']}")
    each, rate = Fraction(noise["each"]), Fraction(noise["rate"])
    beta, read = Fraction(noise["beta"]), Fraction(noise["read"])
    if not 0 < read <= beta <= each:
        raise Wrong(f"the bound of {column} is not smooth enough for its noise")
    # Between scales that differ by a factor of e^beta the noise travels 2 (e^(beta/2) - 1) / beta times as far, which
    # grows with beta: what is allowed at a smaller one is allowed, and no float overflows.
    used = min(float(beta), ROUGHEST)
    if float(rate) > float(each) * 2 * expm1(used / 2) / used * (1 + CLOSE):
        raise Wrong(f"the noise of {column} is too small for its epsilon")
    return Paid(int(bound["groups"]) * each)


def chance_shown(noise: dict[str, Any], far: int, keys: int) -> float:
    """Give how likely one of so many keys of one unit alone is shown, each so far below the threshold."""
    if noise["kind"] != "plain":
        raise NotKnown("keys are chosen by a number without plain noise")
    if far < 1:
        raise Wrong("a key that one unit brings in is shown without any noise")
    size = float(Fraction(noise["size"]))
    if noise["law"] == "laplace":
        tail = exp(-far / size) / (1 + exp(-1 / size))
    else:
        tail = erfc((far - 0.5) / size / sqrt(2)) / 2
    return -expm1(keys * log1p(-tail))


def check_threshold(
    choice: dict[str, Any], noise: dict[str, Any], certificate: dict[str, Any]
) -> Paid:
    """Check that a key that one unit alone brings in is shown with a chance of delta at most."""
    groups, contribution = int(certificate["groups"]), int(certificate["contribution"])
    if not groups:
        return Paid()
    chance = chance_shown(noise, int(choice["threshold"]) - contribution, groups)
    if chance > float(Fraction(choice["delta"])) * (1 + CLOSE):
        raise Wrong(
            f"a key of one unit is shown with chance {chance:.3g}, above delta {choice['delta']}"
        )
    return Paid(keys=Fraction(choice["delta"]))


def normal_delta(rho: Fraction, epsilon: Fraction) -> float:
    """Give the least delta of normal noise with this rho at an epsilon, after Balle and Wang."""
    a = sqrt(2 * float(rho))
    e = float(epsilon)
    upper = erfc((e / a - a / 2) / sqrt(2)) / 2
    lower = erfc((e / a + a / 2) / sqrt(2)) / 2
    return upper - (exp(e + log(lower)) if lower else 0.0)


def check_price(name: str, paid: Paid, epsilon: Fraction, delta: Fraction) -> None:
    """Check that what a release says that it costs covers what its noise loses."""
    left, slack = epsilon - paid.pure, delta - paid.keys
    if left < 0 or slack < 0:
        raise Wrong(
            f"the noise costs {name} epsilon {float(paid.pure):.6g}, delta {float(paid.keys):.3g} at least;"
            f" epsilon {float(epsilon):.6g}, delta {float(delta):.3g} are said"
        )
    if not paid.rho:
        return
    if left == 0 or slack == 0 or normal_delta(paid.rho, left) > float(slack) * (1 + CLOSE):
        raise Wrong(
            f"normal noise costs {name} more than epsilon {float(left):.6g} at delta {float(slack):.3g}"
        )


def check_charge(
    name: str, paid: Paid, price: tuple[Fraction, Fraction], charge: dict[str, Any]
) -> None:
    """Check that the ledger was charged what the release costs, and that its event says no less."""
    epsilon, delta = Fraction(charge["epsilon"], 10**9), Fraction(charge["delta"], 10**18)
    if epsilon < price[0] or delta < price[1]:
        raise Wrong(
            f"{name} was charged epsilon {float(epsilon):.6g}, delta {float(delta):.3g};"
            f" the release costs {float(price[0]):.6g}, {float(price[1]):.3g}"
        )
    event = charge.get("event")
    if event is None:
        return
    claimed = _event(event)
    if claimed.pure < paid.pure or claimed.rho < paid.rho or claimed.keys < paid.keys:
        raise Wrong(f"the event that {name} is accounted by says less than the noise loses")


def _event(event: dict[str, Any]) -> Paid:
    kind = event["kind"]
    if kind == "pure":
        return Paid(Fraction(event["epsilon"]))
    if kind == "approximate":
        return Paid(Fraction(event["epsilon"]), keys=Fraction(event["delta"]))
    if kind == "concentrated":
        return Paid(rho=Fraction(event["rho"]))
    if kind == "random":
        return Paid(Fraction(event["epsilon"]), keys=Fraction(event["delta"]))
    if kind == "composed":
        total = Paid()
        for part in event["events"]:
            total = total.plus(_event(part))
        return total
    raise NotKnown(f"events of this kind are not checked here: {kind}")
