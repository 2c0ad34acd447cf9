"""What an analysis hands back: a certificate with its derivation, or a refusal with its reason. Public values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

from secant.plan import nodes as n
from secant.plan.nodes import Node
from secant.policy.keys import Key
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.later import Later


@frozen
class Step:
    """One application of a rule: which rule, where, what it gives, and from what."""

    rule: str
    place: str
    value: str
    premises: tuple[Step, ...] = ()
    node: Node | None = None
    """What of the plan it speaks of, for who checks it without these rules."""
    bound: Fraction | int | None = None
    """What `value` says, as a number; None where there is none yet, or where words say it all."""


class LaterSteps(Later[tuple[Step, ...]], Sequence[Step]):
    """Steps that are written when they are first read: who asks explains, who answers does not."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> Any:
        return self.value()[at]

    def __len__(self) -> int:
        return len(self.value())

    def __repr__(self) -> str:
        return repr(self.value())


Figures = tuple[tuple[object, ...], ...]
"""Rows of numbers that the engine computed over protected rows. Private."""


@frozen
class Survey:
    """A smooth bound of how many rows of an aggregate's input differ, from figures that the engine computes.

    Neighbors differ in one row of one protected table. With keys, a survey bounds each group by itself.
    """

    analysis: str
    statements: tuple[n.Relation, ...]
    """What the engine computes over protected rows."""
    keyed: tuple[bool, ...]
    """For each statement: whether its first columns are the release's keys; else it serves all groups."""
    rows: Callable[[Fraction, tuple[Figures, ...]], Fraction]
    """(beta, the statements' figures for one group, keys taken off) -> rows that differ; beta-smooth, rounded up."""
    formula: Mapping[str, Any] | None = None
    """How figures are put together, for the papers of a release; None where it is not written down."""
    replaced: bool = False
    """Whether one row goes and one comes."""
    answered: n.Relation | None = None
    """The one statement, and below its rows one with the release's measures (residual.answer), if there is such."""


@frozen
class Coming:
    """Rows that come and go beside values that move, where one row stands in several joined rows (combined.fans)."""

    surveys: tuple[Survey, ...]
    """How many joined rows one row moves; the least of them holds."""
    nearest: Fraction
    """The least distance that a row counts as: surveys are as smooth as beta allows over that distance."""
    each: Callable[[Fraction], Fraction]
    """For a beta, what the bound is at least for each joined row that is counted, in whole steps, rounded up."""
    groups: int
    """Groups that one row moves, at most: each gets its share of epsilon."""


@frozen
class SmoothSensitivity:
    """A smooth bound of one measure for every beta: what to compute is written once beta is known."""

    cap: Fraction | None
    """A public global bound, in whole steps; None if there is none."""
    bounded: bool
    """Whether all sizes are limited by declared ranges, so that the bound does not leap with 1/beta."""
    steady: bool
    """Whether the bound is its cap whatever the data: then plain noise is best."""
    floors: Mapping[str, Fraction]
    """Scan -> the least that its part of the bound is taken as, in whole steps; what is smaller is not computed."""
    motions: Callable[[Fraction], Any]
    """For a beta, how the measure moves with the rows of each scan."""
    typical: Callable[[Fraction], float | None]
    """For a beta, how large the bound is where values lie evenly in their declared ranges; None if unknown."""
    space: Any
    """The space that the parts are put together in."""
    factor: Fraction
    """Whole steps in a unit of what the motions bound."""
    rounding: Fraction
    """How far the computed measure may be from the real one, in whole steps, over the resolution."""
    resolution: Fraction = Fraction(1)
    """The least distance that is told apart: 1, or that of a row that comes or goes where that is less."""
    each: Fraction | None = None
    """The most that the bound of one joined row comes to, in whole steps; None if there is no public number."""
    usual: Callable[[Fraction], float | None] = lambda beta: None
    """For a beta, how large the bound of one row is where values lie evenly in their declared ranges; None if unknown.

    In the units of what the motions bound."""
    least: Callable[[Fraction], Fraction] | None = None
    """For a beta, what the bound never falls below where rows come and go, in whole steps; None where they stay."""
    public: Mapping[str, Fraction] = field(default_factory=dict)
    """Protection -> what it moves the measure by at most, in whole steps, where one bound serves several.

    Rests on combined.beside.
    """
    coming: Coming | None = None
    """What the bound never falls below where a row that comes or goes stands in several joined rows."""


@frozen
class Surveyed:
    """A measure that moves by at most `each` whole steps for every row that differs. The least survey holds."""

    surveys: tuple[Survey, ...]
    each: Fraction
    groups: int
    """Groups that one row moves, at most: each gets its share of epsilon."""
    cap: Fraction | None = None
    """A public bound of the measure, all groups together, in whole steps."""


@frozen
class Tallies:
    """Units counted in buckets of what they add: every limit is read off from these (truncation.tally)."""

    plan: n.Relation
    """Keys: the place of the measure, if there are several, and the bucket; then the number of units, and the sums.

    Or each unit with each of its different values, where these are `assigned`.
    """
    limits: Mapping[str, tuple[int, ...]]
    """Measure column -> the limits between its buckets, ascending, in whole steps; in the order of places."""
    signed: frozenset[str] = frozenset()
    """Measures of which units may also take away: their buckets begin with those below the limits' negatives."""
    sums: bool = False
    """Whether what the units of a bucket add is summed up as well, measure by measure."""
    assigned: bool = False
    """Whether each different value counts that can be assigned to a unit that has it (truncation.matching)."""


@frozen
class Contributions:
    """What each unit adds to measures, and the answer with what it adds cut down to limits (truncation.clip)."""

    above: Tallies | None
    """For each measure and each limit to choose from, how many units add more. Private."""
    clipped: Callable[[Mapping[str, int]], n.Aggregate]
    """For limits by measure column, in whole steps: the measures, where no unit adds more than its limit."""
    raced: Callable[[Mapping[str, tuple[int, ...]]], n.Aggregate] | None = None
    """The same for several limits of each measure at once, in order."""
    at_once: Tallies | None = None
    """Without keys: all counts and all sums, so that units are added up once."""
    each: n.Relation | None = None
    """What each unit adds to each group, which the counts and the cut-down measures both begin with."""


@frozen
class Centering:
    """How a sum that is divided by a count is measured about a center that is chosen privately (truncation.center).

    Amounts are in parts of a whole step.
    """

    divisor: str
    """Measure column of the count."""
    low: int
    high: int
    """Between what one row adds to the sum."""
    anchor: int
    """What one row adds whose value is nearest to zero."""
    placed: Callable[[tuple[int, ...]], n.Aggregate]
    """For ascending points, how many units have their own average between which of them. Private."""
    about: Callable[[int], Contributions]
    """For a center, what each unit adds beyond that center times its rows, group by group."""
    whole: Callable[[int], Contributions]
    """The same, all groups together."""


@frozen
class ClippedContribution:
    """A measure to which one unit adds at most a limit, all groups together; the limit is chosen privately.

    Or all limits race: each has noise of its own, and the largest answer that noise does not explain wins.
    """

    contributions: Contributions
    limits: tuple[int, ...]
    """What may be chosen, ascending, in whole steps. Public."""
    race: bool = False
    cap: Fraction | None = None
    """What the declared limits say of the measure as the release itself computes it; None if they say nothing."""
    partners: tuple[str, ...] = ()
    """The measures whose limits cut this one down, its own among them (truncation.weight)."""
    positive: bool = False
    """Whether no row takes anything away, so that cutting down never gives more."""
    fine: int = 1
    """Parts of a whole step in which cut-down measures are given, and noise is added to them."""
    nobodys: bool = False
    """Whether rows without a unit count: each is a unit of its own, and no limit cuts it (truncation.nobody)."""
    within: int | None = None
    """What one unit adds to one group at most, in whole steps; None if only the limit bounds it."""
    assigned: bool = False
    """Whether different values are assigned to units that have them (truncation.matching)."""
    octaves: bool = False
    """Whether each limit is twice the one before, so that a tally of units by octave chooses (truncation.octaves)."""
    centering: Centering | None = None
    """Where what units add is cut down beyond a center that is chosen privately (truncation.center)."""

    def squared(self, limit: int) -> Fraction:
        """Bound the squared length of the move of the measure, cut down to a limit (truncation.length)."""
        return Fraction(limit * (limit if self.within is None else min(self.within, limit)))


Move = GlobalBound | SmoothSensitivity | Surveyed | ClippedContribution
"""How far a measure moves: by a public number, a smooth bound, or a limit that is yet to be chosen."""


@frozen
class Certificate:
    """For one protection: how far each measure can move, in whole steps, all groups together (an L1 bound)."""

    analysis: str
    protection: str
    bounds: Mapping[str, Move]
    """Measure column -> bound."""
    rows: int
    """Rows of the aggregate's input that differ between neighbors, at most."""
    groups: int
    """Groups that differ between neighbors, at most."""
    contribution: int
    """What the number by which private keys are chosen can move in one group, at most."""
    claims: tuple[Key, ...]
    """Keys that a bound rests on and the engine does not keep: checked before anything is spent, or accepted."""
    derivation: Sequence[Step]
    squares: Mapping[str, Fraction] = field(default_factory=dict)
    """Measure column -> the squared length (L2) of its move, all groups together, at most, in squared steps.

    For a `GlobalBound`; where none is given, the square of that bound holds.
    """
    tried: tuple[Refusal, ...] = ()
    """What other ways of the same analysis said against it."""

    def squared(self, column: str) -> Fraction:
        """Bound the squared length of a measure's move that has a public bound."""
        bound = self.bounds[column]
        assert isinstance(bound, GlobalBound), "only public bounds have a public length"
        return min(bound.value**2, self.squares.get(column, bound.value**2))


@frozen
class Refusal:
    """Why an analysis cannot bound a query."""

    analysis: str
    rule: str
    reason: str
    hint: str
    node: Node | None = None
    others: tuple[Refusal, ...] = ()
    """What other ways of the same analysis say."""


class CannotBound(Exception):  # noqa: N818 - a verdict that becomes a Refusal at the analysis's door
    """Inside an analysis: which node stands in the way, by which rule, why, and what to do."""

    def __init__(self, rule: str, node: Node, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.rule, self.node, self.reason, self.hint = rule, node, reason, hint

    def refusal(self, analysis: str) -> Refusal:
        """Give the verdict as the analysis's refusal."""
        return Refusal(analysis, self.rule, self.reason, self.hint, self.node)


def is_still(bound: Move) -> bool:
    """Whether a measure does not move at all."""
    return isinstance(bound, GlobalBound) and bound.value == 0
