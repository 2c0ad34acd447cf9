"""Budgets and charges as whole numbers: nano-ε, atto-δ and atto-γ.

In: numbers as people and mechanisms state them. Out: integers that add without error, budgets
rounded down and charges rounded up (I4). No float is ever added, compared or stored here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from numbers import Rational, Real

from secant.errors import BudgetError, UsageError
from secant.noise.events import ApproximateEvent, Composed, Event, PureEvent, exceptional_share
from secant.numeric.parameters import Number, exact
from secant.policy.windows import Span
from secant.records import frozen

EPSILON_UNITS = 10**9
"""One ε in ledger units (nano-ε)."""
DELTA_UNITS = 10**18
"""A δ of one in ledger units (atto-δ)."""
LARGEST_EPSILON = 10**9
"""Above this an ε protects nobody; the limit also keeps every amount within 64 bits."""


def as_written(value: Number, *, what: str, code: str = "USE-001") -> Fraction:
    """Give the decimal number that a person wrote: the float 0.1 is read as one tenth, also one of numpy's."""
    if isinstance(value, float):
        return exact(float.__repr__(value), what=what, code=code)
    narrow = isinstance(value, Real) and not isinstance(value, Rational)
    return exact(str(value) if narrow else value, what=what, code=code)


def _epsilon(amount: Fraction) -> Fraction:
    if not 0 <= amount <= LARGEST_EPSILON:
        raise UsageError("USE-002", f"epsilon must lie between 0 and {LARGEST_EPSILON}")
    return amount


def _delta(amount: Fraction, what: str = "delta") -> Fraction:
    if not 0 <= amount < 1:
        raise UsageError("USE-003", f"{what} must be at least 0 and less than 1")
    return amount


@frozen
class Budget:
    """What an owner allows in total."""

    epsilon: int
    """In nano-ε."""
    delta: int = 0
    """In units of 1e-18."""
    gamma: int = 0
    """In units of 1e-18: the share of databases for which random-DP releases may promise nothing."""

    def __post_init__(self) -> None:
        _epsilon(Fraction(self.epsilon, EPSILON_UNITS))
        _delta(Fraction(self.delta, DELTA_UNITS))
        _delta(Fraction(self.gamma, DELTA_UNITS), "gamma")

    @classmethod
    def of(cls, epsilon: Number, delta: Number = 0, gamma: Number = 0) -> Budget:
        """Give the budget that an owner wrote, rounded down to ledger units.

        >>> Budget.of(0.3, "1e-8")
        Budget(epsilon=300000000, delta=10000000000, gamma=0)
        """
        stated = _epsilon(as_written(epsilon, what="epsilon", code="USE-002"))
        slack = _delta(as_written(delta, what="delta", code="USE-003"))
        if 0 < stated * EPSILON_UNITS < 1:
            raise UsageError("USE-002", "an epsilon below 1e-9 is too small to be kept as a budget")
        share = _delta(as_written(gamma, what="gamma", code="USE-003"), "gamma")
        return cls(
            floor(stated * EPSILON_UNITS), floor(slack * DELTA_UNITS), floor(share * DELTA_UNITS)
        )


@frozen
class Charge:
    """What one release takes from one protection: its price, and what was done for it."""

    protection: str
    epsilon: int
    """In nano-ε."""
    delta: int = 0
    """In units of 1e-18."""
    event: Event | None = field(default=None, kw_only=True)
    """What a tighter composition may know; without it the release is (ε, δ) and no more."""
    span: Span | None = field(default=None, kw_only=True)
    """Of which periods it is the price, where an account slides (ledger.window); None: of all time."""

    def __post_init__(self) -> None:
        _epsilon(Fraction(self.epsilon, EPSILON_UNITS))
        _delta(Fraction(self.delta, DELTA_UNITS))

    @classmethod
    def of(
        cls, protection: str, epsilon: Number, delta: Number = 0, *, event: Event | None = None
    ) -> Charge:
        """Give the charge for an exactly stated price, rounded up to ledger units.

        >>> Charge.of("customers", "0.1")
        Charge(protection='customers', epsilon=100000000, delta=0, event=None, span=None)
        """
        price = _epsilon(exact(epsilon, what="epsilon", code="USE-002"))
        slack = _delta(exact(delta, what="delta", code="USE-003"))
        if event is not None and _too_cheap(price, slack, event):
            raise UsageError("USE-001", "the price is less than what basic composition asks")
        return cls(protection, ceil(price * EPSILON_UNITS), ceil(slack * DELTA_UNITS), event=event)

    @property
    def gamma(self) -> int:
        """The share of databases for which it promises nothing, in units of 1e-18, rounded up."""
        return gamma_units(self.event)

    @classmethod
    def of_event(cls, protection: str, event: Event) -> Charge:
        """Give the charge for what is done, priced by basic composition (accounting.basic).

        >>> Charge.of_event("customers", PureEvent("0.1")).epsilon
        100000000
        """
        epsilon, delta = _own_price(event)
        return cls.of(protection, epsilon, delta, event=event)


def gamma_units(event: Event | None) -> int:
    """Give the exceptional share of what was done, in ledger units, rounded up."""
    return 0 if event is None else ceil(exceptional_share(event) * DELTA_UNITS)


def _own_price(event: Event) -> tuple[Fraction, Fraction]:
    # The accounting brings numpy along; a command that spends nothing does not wait for it.
    from secant.ledger.accounting.basic import basic_composition

    return basic_composition([event])


def _too_cheap(epsilon: Fraction, delta: Fraction, event: Event) -> bool:
    """Say whether a price is below the event's own in one part without being above in the other."""
    try:
        own_epsilon, own_delta = _own_price(event)
    except BudgetError:  # it has no (ε, δ) of its own; the caller's theorem stands
        return False
    less, more = epsilon < own_epsilon or delta < own_delta, epsilon > own_epsilon
    return less and not (more or delta > own_delta)


def priced(epsilon: int, delta: int) -> Event:
    """Give the event of a charge of which nothing but its price is known."""
    if not epsilon and not delta:
        return Composed(())
    # A δ alone is priced as if one nano-ε came with it: events have a positive ε.
    price = Fraction(max(1, epsilon), EPSILON_UNITS)
    return ApproximateEvent(price, Fraction(delta, DELTA_UNITS)) if delta else PureEvent(price)


@frozen
class Spent:
    """A sum of charges; unlike a budget it has no upper limit."""

    epsilon: int = 0
    delta: int = 0
    gamma: int = 0

    def plus(self, other: Spent | Charge) -> Spent:
        """Add without rounding."""
        return Spent(
            self.epsilon + other.epsilon, self.delta + other.delta, self.gamma + other.gamma
        )

    def minus(self, other: Spent | Charge) -> Spent:
        """Take back without rounding."""
        return Spent(
            self.epsilon - other.epsilon, self.delta - other.delta, self.gamma - other.gamma
        )

    def within(self, budget: Budget) -> bool:
        """Say whether all parts stay inside the budget."""
        return (
            self.epsilon <= budget.epsilon
            and self.delta <= budget.delta
            and self.gamma <= budget.gamma
        )


def decimals(epsilon: int, delta: int, gamma: int = 0) -> dict[str, str]:
    """Print ledger units as exact decimal numbers; γ only where there is one."""
    share = {"gamma": _plain(Decimal(gamma).scaleb(-18))} if gamma else {}
    return {
        "epsilon": _plain(Decimal(epsilon).scaleb(-9)),
        "delta": _plain(Decimal(delta).scaleb(-18)),
        **share,
    }


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def total(charges: Iterable[Charge]) -> dict[str, Spent]:
    """Add the charges of each protection."""
    sums: dict[str, Spent] = {}
    for charge in charges:
        sums[charge.protection] = sums.get(charge.protection, Spent()).plus(charge)
    return sums
