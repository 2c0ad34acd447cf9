"""Privacy-loss distributions of the dp-accounting package, as a second opinion (accounting.dp_accounting).

In: a tally and the δ of the whole. Out: the ε that dp-accounting reports, nudged up. Its accountant
ignores the count of randomized response, so its accountant is not used: each release becomes a
distribution, is composed with itself as often as it occurred, and the distributions are composed.
Its transforms work in floats without a bound on their error, so no budget rests on it by default.
"""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from typing import Any

from secant.errors import UsageError
from secant.ledger.accounting.tally import Tally
from secant.noise.events import ApproximateEvent, GaussianEvent, LaplaceEvent, Leaf, PureEvent

_NUDGE = 1e-6
_SMALLEST_DELTA = Fraction(1, 10**12)
"""Its transform leaves absolute errors near 1e-15; a smaller δ would be made of them."""


def dp_accounting_epsilon(
    counts: Tally, delta: Fraction, *, interval: float | None = None
) -> Fraction | None:
    """accounting.dp_accounting: let dp-accounting compose; None for events or a δ that it cannot be trusted with."""
    if not counts or delta < _SMALLEST_DELTA:
        return None
    kinds = (PureEvent, ApproximateEvent, LaplaceEvent, GaussianEvent)
    if not all(isinstance(leaf, kinds) for leaf in counts):
        return None
    module = _package("dp_accounting.pld.privacy_loss_distribution")
    params = _package("dp_accounting.pld.common")
    step = interval or _interval(counts)
    whole = None
    for leaf, count in counts.items():
        part = _distribution(leaf, module, params, step)
        part = part.self_compose(count) if count > 1 else part
        whole = part if whole is None else whole.compose(part)
    assert whole is not None
    epsilon = float(whole.get_epsilon_for_delta(float(delta)))
    return Fraction(epsilon) * (1 + Fraction(_NUDGE)) if math.isfinite(epsilon) else None


def _interval(counts: Tally) -> float:
    # It rounds every loss up by at most one interval; a thousandth of the typical loss will do.
    sizes = [
        float(1 / leaf.noise_multiplier if isinstance(leaf, GaussianEvent) else leaf.epsilon)
        for leaf in counts
        if isinstance(leaf, PureEvent | ApproximateEvent | LaplaceEvent | GaussianEvent)
    ]
    return max(min(1e-4, min(sizes) / 100), max(sizes) / 1e5)


def _distribution(leaf: Leaf, module: Any, params: Any, step: float) -> Any:
    if isinstance(leaf, LaplaceEvent):
        return module.from_laplace_mechanism(
            float(1 / leaf.epsilon), value_discretization_interval=step
        )
    if isinstance(leaf, GaussianEvent):
        return module.from_gaussian_mechanism(
            float(leaf.noise_multiplier), value_discretization_interval=step
        )
    assert isinstance(leaf, PureEvent | ApproximateEvent)
    delta = leaf.delta if isinstance(leaf, ApproximateEvent) else Fraction(0)
    pair = params.DifferentialPrivacyParameters(float(leaf.epsilon), float(delta))
    return module.from_privacy_parameters(pair, value_discretization_interval=step)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            "USE-006",
            "dp-accounting is not installed",
            hint="pip install 'secant[accounting]'",
        ) from error
