"""One attribute under one protection: what is believed of it, and how far two of its values are apart.

In: an attribute, the policy, a protection. Out: a `Secret`, whose chances of being guessed can be bounded for any ε.
What the protection does not hide is known to everybody. No data is read.
"""

from __future__ import annotations

import math
from fractions import Fraction

from secant.attack.beliefs import Alike, Belief, Named, belief_of, is_placed, step_of
from secant.attack.goals import Attribute, number_of_text
from secant.attack.guess import bound_at_rate, guess_at_rate
from secant.attack.odds import raised
from secant.attack.priors import ends_of
from secant.errors import UsageError
from secant.numeric import interval as iv
from secant.policy.coverage import tables_of
from secant.policy.norms import Measure, parse_norm, weight_in
from secant.policy.policy import ColumnFacts, Policy, Protection
from secant.records import frozen
from secant.schema.catalog import Catalog


@frozen
class Cell:
    """How a value that moves is measured: its weight in the norm, and how far its range reaches."""

    weight: Fraction
    measure: Measure
    width: Fraction | None
    """The distance of the two farthest values, rounded up; None if there is no range."""
    half: Fraction | None
    """The distance of the farthest value from the one in the middle, rounded up."""
    hop: Fraction | None
    """The longest way of at most 1 between two values; None if the nearest two are farther apart."""


@frozen
class Secret:
    """An attribute as one protection sees it."""

    aim: Attribute
    open_because: str = ""
    """Why everybody knows it, as far as this protection goes; empty if it is hidden."""
    belief: Belief | None = None
    described: str = ""
    before: float | None = None
    """The chance of a good guess before any answer; None if nothing is believed."""
    before_most: float | None = None
    """The same, rounded up."""
    cell: Cell | None = None
    """How it moves, under `cells` and `rows+cells`."""
    apart: Fraction | None = None
    """How far apart databases are at most that differ in its row only, in steps; None under `cells`."""
    tables: frozenset[str] = frozenset()
    """A question that reads none of these tells nothing of it."""
    by_column: bool = False
    """Whether only a question that reads the very column tells something of it."""

    @property
    def row(self) -> tuple[str, int]:
        """Which row it belongs to."""
        return self.aim.table, self.aim.row

    def after(self, epsilon: Fraction) -> float | None:
        """Bound the chance of a good guess after any answers that cost ε in total.

        By attack.peak or attack.text where values move, in √ by the whole range (attack.root), by attack.attribute
        where rows do, by the smaller one where both do (attack.both).
        """
        if self.open_because:
            return 1.0
        if self.before_most is None:
            return None
        if not epsilon:
            return self.before_most
        bounds = []
        if self.cell is not None:
            bounds.append(self._chance_after(epsilon, self.cell))
        if self.apart is not None:
            bounds.append(raised(self.before_most, epsilon * self.apart))
        return min(bounds)

    def _chance_after(self, epsilon: Fraction, cell: Cell) -> float:
        assert self.before_most is not None
        rate = epsilon * cell.weight
        if isinstance(self.belief, (Named, Alike)):
            return raised(self.before_most, rate)
        assert self.belief is not None
        if cell.measure == "sqrt":
            assert cell.width is not None, "there is no cell without a range"
            return raised(self.before_most, epsilon * cell.width)
        center = None if self.aim.center is None else float(number_of_text(self.aim.center))
        bound = bound_at_rate(
            self.belief, center, float(self.aim.radius), rate, logarithmic=cell.measure == "ln"
        )
        return max(bound, self.before_most)  # more was told, so not less is known

    def width(self) -> Fraction | None:
        """Give how far apart two values are at most, in units of ε; None if there is no such number."""
        if self.open_because:
            return Fraction(0)
        widths = [w for w in (self.apart, self.cell.width if self.cell else None) if w is not None]
        return min(widths) if widths else None


def secret_of(
    aim: Attribute, policy: Policy, protection: Protection, catalog: Catalog | None = None
) -> Secret:
    """Say what a protection leaves to guess of an attribute."""
    facts = policy.column(aim.table, aim.column)
    if facts.exact:
        return Secret(aim, f"{aim.name} is declared exact, so there is nothing left to guess")
    if aim.table not in tables_of(policy, protection):
        reason = f"{aim.table} is not among its tables, so it is public to this protection"
        return Secret(aim, reason)
    belief, described = belief_of(aim, facts, catalog)
    cell, apart = None, None
    if protection.kind in ("cells", "rows+cells"):
        weight = weight_of(protection, aim.table, aim.column)
        if weight is None and protection.kind == "cells":
            reason = f"{aim.name} is not in its norm, so it is public to this protection"
            return Secret(aim, reason)
        if weight is not None:
            cell = _cell(weight, aim, facts, belief, catalog)
        if aim.table in protection.add_remove:
            apart = 2 * protection.add_remove[aim.table]
    else:
        apart = Fraction(1 if protection.replace else 2)
    before, most = _before(aim, belief)
    return Secret(
        aim=aim,
        belief=belief,
        described=described,
        before=before,
        before_most=most,
        cell=cell,
        apart=apart,
        # The rest of a row, and a person's other rows, may go with the value.
        tables=_tables(aim, policy, protection),
        by_column=protection.kind == "cells",
    )


def _tables(aim: Attribute, policy: Policy, protection: Protection) -> frozenset[str]:
    covered = tables_of(policy, protection)
    if protection.kind == "unit" and isinstance(covered, frozenset):
        return covered
    return frozenset({aim.table})


def _before(aim: Attribute, belief: Belief | None) -> tuple[float | None, float | None]:
    """Give the chance of a good guess before any answer, and the same rounded up."""
    if belief is None:
        return None, None
    if isinstance(belief, Alike):
        return 1 / belief.count, min(1.0, math.nextafter(1 / belief.count, 1))
    if isinstance(belief, Named):
        if aim.center is None:
            share = max(belief.shares)
        elif aim.center in belief.values:
            share = belief.shares[belief.values.index(aim.center)]
        else:
            share = 0.0
        return share, min(1.0, math.nextafter(share, 1)) if share else 0.0
    center = None if aim.center is None else float(number_of_text(aim.center))
    guess = guess_at_rate(belief, center, float(aim.radius), Fraction(0))
    return guess.prior, guess.posterior


# ── how far apart ────────────────────────────────────────────────────────────────────────────────


def weight_of(protection: Protection, table: str, column: str) -> tuple[Fraction, Measure] | None:
    """Give how far a cell moves per unit, and the coordinate that is meant; None if it is public.

    Where one coordinate moves alone, every ℓp combination, of columns, rows or tables, is that one
    coordinate's move, so the weight is the product of the factors above it (attack.cell), combined over its places.
    """
    text = protection.distance.get(table)
    return None if text is None else weight_in(parse_norm(text), column)


def _cell(
    weight: tuple[Fraction, Measure],
    aim: Attribute,
    facts: ColumnFacts,
    belief: Belief | None,
    catalog: Catalog | None,
) -> Cell:
    factor, measure = weight
    if not is_placed(aim, facts, catalog):
        if measure != "x":
            raise UsageError(
                "USE-001", f"a distance in {measure} needs a declared range of numbers"
            )
        # Two texts are the same, or one unit apart (attack.text).
        return Cell(factor, measure, factor, factor, factor if factor <= 1 else None)
    constants = [number_of_text(value) for value in facts.range or facts.values or ()]
    if constants and belief is not None and not isinstance(belief, (Named, Alike)):
        constants += [Fraction(end) for end in ends_of(belief)]  # the attacker may believe in more
    if not constants:
        if measure == "sqrt":
            raise UsageError("USE-001", "a distance in sqrt needs a declared range")
        return Cell(factor, measure, None, None, None)
    low, high = min(constants), max(constants)
    step = step_of(aim, facts, catalog)
    if measure != "x":
        width = _span(low, high, measure) * factor
        # A middle in ln or √ need not be a value: every value is within the whole range of one that is.
        return Cell(factor, measure, width, width, Fraction(1) if step is None else None)
    width = (high - low) * factor
    if step is None:
        return Cell(factor, measure, width, width / 2, Fraction(1))
    most = math.ceil(math.ceil((high - low) / step) / 2) * step * factor
    at_once = math.floor(1 / (step * factor)) * step * factor
    return Cell(factor, measure, width, min(width, most), at_once or None)


def _span(low: Fraction, high: Fraction, measure: Measure) -> Fraction:
    """Give how far apart two values are in ln or √, rounded up."""
    if measure == "ln":
        if low <= 0:
            raise UsageError("USE-001", "a distance in ln needs a range of positive values")
        return Fraction(math.log(high / low) * (1 + 1e-12))
    if low < 0:
        raise UsageError("USE-001", "a distance in sqrt needs a range without negative values")
    first, last = iv.square_root(iv.interval(low, high)).ends()
    return last - first
