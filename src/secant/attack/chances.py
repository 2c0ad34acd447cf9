"""The chance that a whole goal is guessed: one attribute, or several joined by `and` and `or`.

In: a goal whose attributes are secrets under one protection, and what answers have cost. Out: the chance before, bounds
after any answer and on average, and what is added at most whatever was believed (attack.formula, attack.any_prior).
Never: data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from secant.attack.goals import Attacker, Attribute, Formula, Goal, leaves
from secant.attack.odds import added_at_most, added_on_average, on_average, raised, up
from secant.attack.secrets import Secret, secret_of
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog

MOST_HOPS = 10_000
Reads = Mapping[str, frozenset[str]]
"""Table -> the columns that a question reads of it."""


@frozen
class Amount:
    """What answers cost, and what they were computed from."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    reads: Reads | None = None
    """None where that is not known: then they may tell of everything."""

    def touches(self, secret: Secret) -> bool:
        """Whether the answers can depend on a secret (attack.read)."""
        if self.reads is None:
            return True
        columns = self.reads.get(secret.aim.table)
        if secret.by_column:
            return columns is not None and secret.aim.column in columns
        return any(table in self.reads for table in secret.tables)


@frozen
class Chance:
    """What is known of a guess, before and after."""

    prior: float | None
    """The chance before any answer; None if nothing is believed."""
    posterior: float | None
    """No single answer raises it above this; None if that is not bounded."""
    on_average: float | None
    """The best guess is right at most so often, averaged over answers; holds for every δ."""
    advantage: float | None
    """No single answer adds more than this to the chance."""
    on_average_advantage: float | None
    """Nothing more is added on average over answers."""
    any_advantage: float | None
    """No single answer adds more than this to the chance of anybody, whatever is believed before."""


@frozen
class Aimed:
    """A goal with its attributes as one protection sees them."""

    goal: Goal
    secrets: Mapping[Attribute, Secret]
    dependent: bool
    """Whether attributes may depend on each other: then they are one secret."""
    twice: bool
    """Whether an attribute occurs twice: then chances are added, and not multiplied."""
    replace: bool

    def hidden(self) -> list[Secret]:
        """Give the attributes that the protection hides."""
        return [s for s in self.secrets.values() if not s.open_because]

    @property
    def apart(self) -> bool:
        """Whether the attributes are independent."""
        return not (self.dependent or self.twice)

    @property
    def loose(self) -> bool:
        """Whether the chance before is only bounded: a ball, for one, is judged by its box."""
        unknown = any(s.before is None for s in self.hidden())
        return unknown or not self.apart or any(g.ball for g in _formulas(self.goal))


def aimed(
    attacker: Attacker, policy: Policy, protection: Protection, catalog: Catalog | None
) -> Aimed:
    """Look at a goal through one protection."""
    assert attacker.goal is not None
    secrets = {aim: secret_of(aim, policy, protection, catalog) for aim in leaves(attacker.goal)}
    columns = [(a.table, a.row, a.column) for a in leaves(attacker.goal)]
    twice = len(set(columns)) < len(columns)
    return Aimed(attacker.goal, secrets, attacker.dependent, twice, protection.replace)


def chance(aim: Aimed, amounts: Sequence[Amount]) -> Chance:
    """Bound the chance that the goal is guessed after answers that cost these amounts together."""
    spent = {
        a: (
            sum((x.epsilon for x in amounts if x.touches(s)), Fraction(0)),
            sum((x.delta for x in amounts if x.touches(s)), Fraction(0)),
        )
        for a, s in aim.secrets.items()
    }
    pure = not any(delta for _, delta in spent.values())
    epsilons = {a: epsilon for a, (epsilon, _) in spent.items()}
    before, most = (_before(aim, aim.goal, most=up) for up in (False, True))
    log_ratio, steps = _log_ratio(aim, epsilons), _steps(aim, spent)
    posterior = _after(aim, epsilons, most, log_ratio) if pure else None
    average = None if most is None else 1.0
    if most is not None and steps is not None:
        average = on_average(most, steps)
        if all(a.center is not None for a in leaves(aim.goal)):
            # A target that is fixed is told by yes or no, and no may be the better guess before.
            least = 0.0 if aim.loose or before is None else before * (1 - 1e-9)
            average = on_average(max(most, 1 - least), steps)
        elif posterior is not None:
            average = min(average, posterior)
    whatever = added = added_at_most(log_ratio) if pure and log_ratio is not None else None
    added_mean = None if steps is None else added_on_average(steps)
    if added is not None:
        added_mean = added if added_mean is None else min(added, added_mean)
    if posterior is not None and before is not None:
        rise = posterior if aim.loose else max(0.0, posterior - before)
        added = rise if added is None else min(added, rise)
    return Chance(before, posterior, average, added, added_mean, whatever)


# ── one answer ───────────────────────────────────────────────────────────────────────────────────


def _before(aim: Aimed, goal: Goal, *, most: bool) -> float | None:
    if isinstance(goal, Attribute):
        secret = aim.secrets[goal]
        if secret.open_because:
            return 1.0
        return secret.before_most if most else secret.before
    joined = _joined(goal, [_before(aim, part, most=most) for part in goal.parts], aim.apart)
    return up(joined) if most and joined is not None else joined


def _joined(goal: Formula, parts: Sequence[float | None], apart: bool) -> float | None:
    """Give the chance of a goal from those of its parts: of independent ones, or of any (attack.formula)."""
    present = [part for part in parts if part is not None]
    if goal.joined_by == "and":
        if not present or not apart:
            return min(present, default=None)
        return math.prod(present)  # a part of which nothing is known may be certain
    if len(present) < len(parts):
        return None
    return 1 - math.prod(1 - part for part in present) if apart else min(1.0, sum(present))


def _after(
    aim: Aimed,
    spent: Mapping[Attribute, Fraction],
    most: float | None,
    magnitude: Fraction | None,
) -> float | None:
    """Bound the chance of the goal after any answer."""
    # All attributes as one secret: that holds whatever they have to do with each other.
    bounds = [] if most is None or magnitude is None else [raised(most, magnitude)]
    if not aim.dependent:
        bound = _bounded(aim, aim.goal, spent)
        bounds += [] if bound is None else [bound]
    return min(bounds, default=None)


def _bounded(aim: Aimed, goal: Goal, spent: Mapping[Attribute, Fraction]) -> float | None:
    if isinstance(goal, Attribute):
        return aim.secrets[goal].after(spent[goal])
    bound = _joined(goal, [_bounded(aim, part, spent) for part in goal.parts], aim.apart)
    # What is about one row only is one secret, however many attributes it has (attack.attribute).
    inside = [aim.secrets[leaf] for leaf in leaves(goal) if not aim.secrets[leaf].open_because]
    before = _before(aim, goal, most=True)
    if (
        before is not None
        and len({s.row for s in inside}) == 1
        and all(s.apart is not None for s in inside)
    ):
        whole = raised(before, max(spent[s.aim] * (s.apart or 0) for s in inside))
        bound = whole if bound is None else min(bound, whole)
    return None if bound is None else up(bound)


def _formulas(goal: Goal) -> list[Formula]:
    if isinstance(goal, Attribute):
        return []
    return [goal, *(inner for part in goal.parts for inner in _formulas(part))]


# ── everything at once ───────────────────────────────────────────────────────────────────────────


def _log_ratio(aim: Aimed, spent: Mapping[Attribute, Fraction]) -> Fraction | None:
    """Give how far the laws of the answers can be apart for two values of all attributes; None if any far."""
    total = Fraction(0)
    rows: dict[tuple[str, int], Fraction] = {}
    for secret in aim.hidden():
        epsilon, width = spent[secret.aim], secret.width()
        if not epsilon:
            continue
        if width is None:
            return None
        if secret.cell is None:
            rows[secret.row] = max(rows.get(secret.row, Fraction(0)), epsilon * width)
        else:
            total += epsilon * width
    return total + sum(rows.values(), Fraction(0))


def _steps(
    aim: Aimed, spent: Mapping[Attribute, tuple[Fraction, Fraction]]
) -> list[tuple[Fraction, Fraction]] | None:
    """Give the (ε, δ) steps that lead from any value of the secret to one law; None if there are no such steps."""
    steps: list[tuple[Fraction, Fraction]] = []
    rows: dict[tuple[str, int], tuple[Fraction, Fraction]] = {}
    for secret in aim.hidden():
        epsilon, delta = spent[secret.aim]
        if not epsilon and not delta:
            continue
        secret_steps = _steps_of(secret, epsilon, delta, replace=aim.replace)
        if secret_steps is None:
            return None
        if secret.cell is None:
            e, d = rows.get(secret.row, (Fraction(0), Fraction(0)))
            rows[secret.row] = max(e, secret_steps[0][0]), max(d, delta)
        else:
            steps += secret_steps
    return steps + list(rows.values())


def _steps_of(
    secret: Secret, epsilon: Fraction, delta: Fraction, *, replace: bool
) -> list[tuple[Fraction, Fraction]] | None:
    # Every value is one step from the database without the row; with `replace`, from the average of all.
    gone = None if secret.apart is None else Fraction(1) if replace else secret.apart / 2
    if not delta:
        half = None if secret.cell is None else secret.cell.half
        ways = [way for way in (gone, half) if way is not None]
        return [(epsilon * min(ways), delta)] if ways else None
    if gone is not None:
        return [(epsilon, delta)] if gone == 1 else None
    assert secret.cell is not None
    half, hop = secret.cell.half, secret.cell.hop
    if half is None or hop is None or half / hop > MOST_HOPS:
        return None
    return [(epsilon, delta)] * math.ceil(half / hop)
