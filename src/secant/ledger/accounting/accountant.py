"""The accountant: what a history costs by the tightest theorem that holds for it, and which one.

In: events, a δ or a budget, and whether parameters were fixed in advance. Out: totals and decisions
that name their theorem and what they hold for. ε and δ are rounded up, every comparison is exact,
and nothing is remembered between two questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from secant.errors import BudgetError, UsageError
from secant.ledger.accounting.advanced import advanced_first, advanced_second, self_adaptive
from secant.ledger.accounting.basic import basic_sums
from secant.ledger.accounting.concentrated import gaussian, renyi, zero_concentrated
from secant.ledger.accounting.dp_accounting_bridge import dp_accounting_epsilon
from secant.ledger.accounting.filters import FILTERS, filter_reading, odometer
from secant.ledger.accounting.tally import (
    Tally,
    by_price,
    by_rho,
    exact_sum,
    on_good_databases,
    slack,
    tally,
)
from secant.noise.events import (
    Event,
    LaplaceEvent,
    Leaf,
    MetricEvent,
    PureEvent,
    RandomEvent,
    exact_delta,
    exact_epsilon,
)
from secant.numeric.arrays import installed
from secant.numeric.parameters import Number, exact
from secant.records import frozen


@frozen
class Theorem:
    """A composition theorem for parameters that are fixed in advance."""

    name: str
    epsilon: Callable[[Tally, Fraction], Fraction | None]
    """(tally, δ of the whole) -> ε of the whole, rounded up; None where it says nothing."""
    default: bool = True


def _basic_within(counts: Tally, delta: Fraction) -> Fraction | None:
    sums = basic_sums(counts)
    # Failures of fixed parameters are independent, so their product form is allowed as well.
    if sums is None or not (sums[1] <= delta or slack(counts, delta) is not None):
        return None
    return sums[0]


def _loss_distribution(counts: Tally, delta: Fraction) -> Fraction | None:
    if not installed():
        return None  # the other theorems hold without it
    # Filters and sums do without numpy, and a command that needs no more should not wait for it.
    from secant.ledger.accounting.losses import loss_distribution

    return loss_distribution(counts, delta)


# In order of cost (I8). Once one of them is optimal for the history, the others are not asked.
THEOREMS: tuple[Theorem, ...] = (
    Theorem("accounting.basic", _basic_within),
    Theorem("accounting.advanced", advanced_first),
    Theorem("accounting.self_adaptive", self_adaptive),
    Theorem("accounting.optimal", advanced_second),
    Theorem("accounting.gauss", gaussian),
    Theorem("accounting.loss", _loss_distribution),
    Theorem("accounting.zcdp", zero_concentrated),
    Theorem("accounting.renyi", renyi),
    Theorem("accounting.dp_accounting", dp_accounting_epsilon, default=False),
)
DEFAULT_THEOREMS = tuple(theorem.name for theorem in THEOREMS if theorem.default)
_FEW = 32
DEFAULT_FILTERS = ("accounting.filter_basic", "accounting.filter_renyi")


@frozen
class Total:
    """What a history costs, by which theorem, and what that figure holds for."""

    epsilon: Fraction
    delta: Fraction
    gamma: Fraction
    """More than 0: random differential privacy, which fails on this share of databases."""
    theorem: str
    adaptive: bool
    """True if parameters may have been chosen in view of answers; the figure then depends on the
    answers too, and what was promised in advance is the budget."""
    distance: Fraction | None = None
    """For metric protections: the figure holds for databases at most this far apart."""
    per_distance: bool = False
    """For metric protections: ε is per unit of distance, for all distances."""

    def statement(self) -> str:
        """Say what is promised, in one sentence."""
        name = "random differential privacy" if self.gamma else "differential privacy"
        parts = [f"epsilon {_printed(self.epsilon)}"]
        if self.per_distance:
            parts[0] += " per unit of distance"
        if self.delta:
            parts.append(f"delta {_printed(self.delta)}")
        if self.gamma:
            parts.append(f"except for a share {_printed(self.gamma)} of databases")
        if self.distance is not None:
            parts.append(f"only for databases at most {_printed(self.distance)} apart")
        chosen = "so far, parameters chosen adaptively" if self.adaptive else "fixed in advance"
        return f"{name}: {', '.join(parts)}; {chosen} ({self.theorem})"


@frozen
class Decision:
    """Whether a release may run, what everything would then cost, and why not if it may not."""

    fits: bool
    total: Total | None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.fits


@frozen
class Accountant:
    """Prices histories by the chosen theorems and filters; the defaults are all proved ones."""

    theorems: tuple[str, ...] = DEFAULT_THEOREMS
    filters: tuple[str, ...] = DEFAULT_FILTERS
    slack_share: Fraction = Fraction(1, 4)
    """The part of a budget's δ that adaptive filters set aside; the rest is for releases' own δ."""

    def __post_init__(self) -> None:
        unknown = {*self.theorems} - {rule.name for rule in THEOREMS}
        unknown |= {*self.filters} - {rule.theorem for rule in FILTERS}
        if unknown:
            raise UsageError("USE-001", "there is no such composition theorem")
        if not 0 < exact(self.slack_share, what="slack_share") < 1:
            raise UsageError("USE-001", "slack_share must lie strictly between 0 and 1")

    def total(
        self,
        events: Iterable[Event],
        *,
        delta: Number,
        adaptive: bool,
        distance: Number | None = None,
    ) -> Total:
        """Give the least ε that is proved at `delta`; raise BUD-005 if there is none.

        >>> from secant.noise.events import PureEvent, Repeated
        >>> history = [Repeated(PureEvent("0.1"), 100)]
        >>> print(Accountant().total(history, delta="1e-6", adaptive=False).statement())
        differential privacy: epsilon 4.774568, delta 0.000001; fixed in advance (accounting.optimal)
        """
        allowed = exact_delta(delta)
        history = tuple(events)
        total, reason = self._price(history, allowed, adaptive, distance, None)
        if total is None:
            raise BudgetError("BUD-005", f"this history has no epsilon at this delta: {reason}")
        return total

    def fits(
        self,
        history: Iterable[Event],
        new: Iterable[Event],
        *,
        epsilon_budget: Number,
        delta_budget: Number,
        gamma_budget: Number = 0,
        adaptive: bool = True,
        distance: Number | None = None,
    ) -> Decision:
        """Decide whether `new` may run after `history` within the budget.

        With `adaptive=True` only filters decide, so the answer is right however the parameters of
        the releases were chosen; the budget itself must not depend on answers. Where a history
        holds random-DP releases its order matters: the first event must be the first in time.
        """
        epsilon, allowed = exact_epsilon(epsilon_budget), exact_delta(delta_budget)
        exceptional = exact_delta(gamma_budget, what="gamma")
        events = (*history, *new)
        total, reason = self._price(events, allowed, adaptive, distance, epsilon)
        if total is None:
            return Decision(False, None, reason)
        if total.gamma > exceptional:
            return Decision(False, total, "the exceptional share exceeds what the budget allows")
        if total.epsilon > epsilon or total.delta > allowed:
            return Decision(False, total, "the total exceeds the budget")
        return Decision(True, total)

    def _price(
        self,
        events: Sequence[Event],
        delta: Fraction,
        adaptive: bool,
        distance: Number | None,
        budget: Fraction | None,
    ) -> tuple[Total | None, str]:
        """Price any history: metric and random releases first, then the plain rest."""
        counts = tally(events)
        apart = None if distance is None else exact_epsilon(distance, what="distance")
        metric = [leaf for leaf in counts if isinstance(leaf, MetricEvent)]
        if apart is None and metric:
            return self._per_distance(counts, metric, adaptive)
        if len(metric) != len(counts) and apart is not None:
            return None, "a distance is meaningful for metric releases only"
        plain = {_at_distance(leaf, apart): count for leaf, count in counts.items()}
        gamma, reason = _exceptional(events, counts, adaptive)
        if gamma is None:
            return None, reason
        plain = on_good_databases(plain)
        if adaptive:
            priced = self._adaptive(plain, delta, budget)
        else:  # either reading of concentrated releases is a theorem of its own (accounting.both)
            both = [self._fixed(view, delta) for view in _readings(plain)]
            priced = min((total for total in both if total is not None), default=None)
        if priced is None:
            return None, "no chosen theorem covers these releases within this delta"
        epsilon, used, theorem = priced
        if gamma:
            theorem = f"accounting.random with {theorem}"
        if apart is not None:
            theorem = f"accounting.metric with {theorem}"
        return Total(epsilon, used, gamma, theorem, adaptive, apart), ""

    def _per_distance(
        self, counts: Tally, metric: list[MetricEvent], adaptive: bool
    ) -> tuple[Total | None, str]:
        """accounting.metric: ε per unit of distance adds up, also when chosen adaptively."""
        if len(metric) != len(counts):
            return None, "metric releases cannot be added to releases of another kind"
        epsilon = exact_sum(counts[leaf] * leaf.epsilon for leaf in metric)
        return Total(
            epsilon, Fraction(0), Fraction(0), "accounting.metric", adaptive, None, True
        ), ""

    def _fixed(self, counts: Tally, delta: Fraction) -> tuple[Fraction, Fraction, str] | None:
        """Take the least ε over the chosen theorems, cheap ones first."""
        if not counts:
            return Fraction(0), Fraction(0), "accounting.basic"
        best: tuple[Fraction, str] | None = None
        optimal = False
        for theorem in THEOREMS:
            if theorem.name not in self.theorems or (optimal and theorem.default):
                continue
            epsilon = theorem.epsilon(counts, delta)
            if epsilon is None:
                continue
            optimal = optimal or _is_optimal(theorem.name, counts)
            if best is None or epsilon < best[0]:
                best = epsilon, theorem.name
        if best is None:
            return None
        sums = basic_sums(counts)
        added = best[1] == "accounting.basic" and sums is not None
        return best[0], min(sums[1], delta) if added and sums else delta, best[1]

    def _adaptive(
        self, counts: Tally, delta: Fraction, budget: Fraction | None
    ) -> tuple[Fraction, Fraction, str] | None:
        """Read the filters against a budget; without a budget, read the odometer."""
        if not counts:
            return Fraction(0), Fraction(0), "accounting.filter_basic"
        if budget is None:
            read = odometer(counts, delta=delta, share=self.slack_share)
            return None if read is None else (read[0], delta, read[1])
        return filter_reading(
            counts, epsilon=budget, delta=delta, theorems=self.filters, share=self.slack_share
        )


def _is_optimal(theorem: str, counts: Tally) -> bool:
    # Equal ε are composed optimally by accounting.optimal only if nothing more than ε is known of each release.
    if theorem == "accounting.optimal":
        return not any(isinstance(leaf, LaplaceEvent) for leaf in counts)
    # The grid of accounting.loss costs about 1e-4; where the Rényi orders are cheap they may do better.
    return theorem == "accounting.gauss" or (theorem == "accounting.loss" and len(counts) > _FEW)


def _readings(counts: Tally) -> list[Tally]:
    price, rho = by_price(counts), by_rho(counts)
    return [price] if price == rho else [price, rho]


def _at_distance(leaf: Leaf, apart: Fraction | None) -> Leaf:
    return PureEvent(leaf.epsilon * apart) if isinstance(leaf, MetricEvent) and apart else leaf


def _exceptional(
    events: Sequence[Event], counts: Tally, adaptive: bool
) -> tuple[Fraction | None, str]:
    """accounting.random: add the shares γ, where the union bound holds.

    An exceptional set must be fixed before an answer is seen: a function chosen afterwards may be
    chosen to be bad on this very database. So with adaptive choices only the first event of a
    history may hold random-DP releases.
    """
    gammas = [
        (leaf.gamma, count) for leaf, count in counts.items() if isinstance(leaf, RandomEvent)
    ]
    late = tally(events[1:]) if adaptive and gammas else {}
    if any(isinstance(leaf, RandomEvent) for leaf in late):
        return None, "random differential privacy does not compose with adaptively chosen functions"
    return min(Fraction(1), exact_sum(count * gamma for gamma, count in gammas)), ""


def _printed(value: Fraction) -> str:
    """Print a number with seven digits, rounded up."""
    seven = Context(prec=7, rounding=ROUND_CEILING)
    quotient = seven.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{quotient.normalize(seven):g}"
