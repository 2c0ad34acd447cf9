"""Rows that come and go and values that move, under one distance: what two analyses say, put together.

In: a request under `rows+cells`. Out: a certificate: for each measure the larger of how fast it moves with values and
how far a row makes it jump, over the distance that a row counts as; where a row stands in one joined row, as a smooth
bound with a public floor. The number of rows is private here, so no count, end or fan of a protected table is asked
for. Never here: how values move, or how many rows differ (C-BOTH).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from secant.analysis.certificate import Certificate, Curve, Move, Refusal, Step, is_still
from secant.analysis.derivative.room import DerivativeRoom
from secant.analysis.interface import Analysis, Request
from secant.analysis.stability.room import StabilityRoom
from secant.analysis.summands import amount
from secant.numeric.ball import ball, upper, working_precision
from secant.plan.reads import tables_read
from secant.terms.bounds import GlobalBound
from secant.terms.keys import in_order
from secant.terms.policy import Protection

Jumps = Mapping[str, tuple[Fraction, Fraction]]
"""Table -> (how far one row moves a measure, the distance that a row counts as)."""


class CombinedRoom:
    """Bounds in the owner's norm with rows that come and go, under `rows+cells`."""

    name = "combined"
    kinds: tuple[str, ...] = ("rows+cells",)
    values: Analysis = DerivativeRoom()
    rows: Analysis = StabilityRoom()

    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure, or say which of the two analyses refuses."""
        protection = request.protection
        against = self._against(request)
        if against is not None:
            return against
        moving = self._asked(self.values, request, replace(protection, kind="cells"))
        if isinstance(moving, Refusal):
            return moving
        jumping: dict[str, Certificate] = {}
        for table in sorted(_tables(request)):
            alone = replace(protection, kind="rows", tables=(table,), distance={})
            found = self._asked(self.rows, request, alone)
            if isinstance(found, Refusal):
                return found
            jumping[table] = found
        return self._together(request, moving, jumping)

    def _asked(
        self, room: Analysis, request: Request, protection: Protection
    ) -> Certificate | Refusal:
        """Ask an analysis without any fact about the rows of tables: their number is private here."""
        return room.bound(Request(request.release, request.facts, protection))

    def _against(self, request: Request) -> Refusal | None:
        protection, release = request.protection, request.release
        missing = [t for t in _tables(request) if t not in protection.add_remove]
        plain = protection.table_norm == "l1" and all(
            power == "l1" for power in protection.row_norms.values()
        )
        if missing:
            reason = f"nobody said which distance a row of {missing[0]} counts as"
            return self._refuse(reason, f"add {missing[0]} to add_remove")
        if not plain:
            reason = (
                "rows that come and go add up with moves, so rows and tables are combined by l1"
            )
            return self._refuse(reason, "leave `rows` and `tables` out of the protection")
        if protection.public_rows:
            reason = "public rows have no rule beside rows that come and go"
            return self._refuse(reason, "put public rows into a table of their own")
        if release.ranked:
            reason = "a rank leaps where values move a little"
            return self._refuse(reason, "ask for counts, sums or averages instead")
        if release.selector is not None:
            reason = "keys are not chosen per unit of distance"
            return self._refuse(reason, "declare `values` for the grouped columns")
        return None

    def _refuse(self, reason: str, hint: str) -> Refusal:
        return Refusal(self.name, "C-BOTH", reason, hint)

    def _together(
        self, request: Request, moving: Certificate, jumping: Mapping[str, Certificate]
    ) -> Certificate | Refusal:
        weights = request.protection.add_remove
        single = all(c.rows <= 1 for c in jumping.values())
        bounds: dict[str, Move] = {}
        steps: list[Step] = []
        for m in request.release.measures:
            jumps: dict[str, tuple[Fraction, Fraction]] = {}
            for table, certificate in jumping.items():
                jump = certificate.bounds[m.column]
                assert isinstance(jump, GlobalBound), "the stability room gives public numbers"
                jumps[table] = jump.value, weights[table]
            bound = _joined(moving.bounds[m.column], jumps, single=single)
            if bound is None:
                reason = f"{m.words} moves with values by no public number"
                return self._refuse(
                    reason, "declare ranges, and join on keys that the engine keeps"
                )
            bounds[m.column] = bound
            steps.append(_step(m.words, m.step, bound, moving, jumps))
        claims = {k for c in (moving, *jumping.values()) for k in c.claims}
        return Certificate(
            self.name,
            request.protection.name,
            bounds,
            max((c.rows for c in jumping.values()), default=0),
            max((c.groups for c in jumping.values()), default=0),
            max((c.contribution for c in jumping.values()), default=0),
            in_order(claims),
            (*steps, *moving.derivation, *(s for c in jumping.values() for s in c.derivation)),
        )


def _tables(request: Request) -> Iterator[str]:
    """Give the protected tables that the release reads."""
    read = tables_read(*request.release.aggregates)
    return (t for t in sorted(read) if t in request.protection.distance)


def _joined(moving: Move, jumps: Jumps, *, single: bool) -> Move | None:
    """Put together how a measure moves with values and with rows; None if no public number bounds it (C-BOTH)."""
    over = max((jump / weight for jump, weight in jumps.values()), default=Fraction(0))
    if is_still(moving):
        return GlobalBound(over)
    assert isinstance(moving, Curve), "values move by a curve or not at all"
    if moving.cap is None:
        return None
    nearest = min((weight for _, weight in jumps.values()), default=Fraction(1))
    resolution = min(Fraction(1), nearest)
    return replace(
        moving,
        cap=max(moving.cap, over),
        steady=moving.steady or not single,
        rounding=moving.rounding / resolution,
        resolution=resolution,
        least=_least(moving.cap, nearest, jumps),
    )


def _least(slope: Fraction, nearest: Fraction, jumps: Jumps) -> Callable[[Fraction], Fraction]:
    """Give, for a beta, what the bound never falls below: a row that may come, and the jumps, rounded up."""

    def least(beta: Fraction) -> Fraction:
        with working_precision(128):
            coming = upper((-ball(beta * nearest)).exp() * ball(slope))
        parts = [jump_part(beta, weight, jump) for jump, weight in jumps.values()]
        return max([coming, *parts])

    return least


def jump_part(beta: Fraction, weight: Fraction, jump: Fraction) -> Fraction:
    """Give g·J, g = beta / (2(e^(beta·G/2) − 1)): what hides a jump by J at distance G, rounded up (C-BOTH)."""
    with working_precision(128):
        return upper(ball(beta * jump) / (2 * (ball(beta * weight / 2).exp() - 1)))


def _step(words: str, unit: Fraction, bound: Move, moving: Certificate, jumps: Jumps) -> Step:
    told = ", ".join(
        f"a row of {table} moves it by {amount(jump * unit)} at a distance of {amount(weight)}"
        for table, (jump, weight) in jumps.items()
    )
    most = bound.value if isinstance(bound, GlobalBound) else bound.cap
    assert isinstance(most, Fraction)
    return Step("C-BOTH", f"{words}: {told}", f"moves by at most {amount(most * unit)} a unit")
