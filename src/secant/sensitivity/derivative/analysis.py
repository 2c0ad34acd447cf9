"""The derivative analysis: values move, rows stay. How far does a release move with them?

In: a release whose rows public columns decide. Out: a certificate with, for each measure, a public cap
and a curve: for every beta the statement that yields a beta-smooth bound together with the measure.
It checks by itself that nothing but continuous functions of protected values is released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from secant.numeric.quick import quick
from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.rewrites.measures import Measure
from secant.policy.keys import Key as TableKey
from secant.policy.keys import in_order
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import (
    CannotBound,
    Certificate,
    LaterSteps,
    Refusal,
    SmoothSensitivity,
    Step,
)
from secant.sensitivity.derivative import function_rules
from secant.sensitivity.derivative.branch import Branch, Moving, tables_in_one_group
from secant.sensitivity.derivative.derivation import derivation_of
from secant.sensitivity.derivative.soften.branches import branches_of
from secant.sensitivity.derivative.soften.emptiness import moves
from secant.sensitivity.derivative.soften.nested import flattened
from secant.sensitivity.derivative.space import Space, space_of
from secant.sensitivity.interface import Request, refusing

RULES = function_rules.__name__  # the calculus' calls are registered there


class DerivativeAnalysis:
    """Smooth bounds in the owner's norm, under `cells`."""

    name = "derivative"
    kinds: tuple[str, ...] = ("cells",)

    @refusing
    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure of the release, or say which node stands in the way."""
        if request.protection.kind != "cells":
            return Refusal(
                self.name,
                "derivative.kind",
                f"protections of kind {request.protection.kind} are not bounded here",
                "use kind `cells`",
            )
        return _Work(request).certificate(self.name)


@dataclass
class _Work:
    request: Request

    def certificate(self, analysis: str) -> Certificate:
        release, protection = self.request.release, self.request.protection
        space = space_of(protection, scans(*release.aggregates))
        protected = frozenset(space.variables)
        bounds: dict[str, GlobalBound | SmoothSensitivity] = {}
        steps: list[Callable[[], Step]] = []
        claims: set[TableKey] = set()
        reader = None
        for measure, call in zip(release.measures, release.exact.aggregations, strict=True):
            if reader is None and _touches(release.exact.input, call, protected):
                reader = _Reader(self.request, space, protected)
            if reader is not None and measure.preprocessed is not None:
                raise CannotBound(
                    "derivative.aggregate",
                    release.original,
                    "values that move have no bound beside a declared `moves`",
                    "let the owner list the protections as alternatives",
                )
            curve = None if reader is None else reader.curve(measure, call)
            if curve is None:
                bounds[measure.column] = GlobalBound(quick(0))
                steps.append(partial(_still, measure.words))
                continue
            bounds[measure.column] = curve[0]
            steps.append(curve[1])
            claims |= curve[2]
        for ranked in release.ranked:
            if moves(ranked.cells, protected):
                raise CannotBound(
                    "derivative.aggregate",
                    release.original,
                    "ranks of protected values have no bound beside a protection of rows",
                    "let the owner list the protections as alternatives",
                )
            bounds[ranked.column] = GlobalBound(quick(0), "linf")
            steps.append(partial(_still, ranked.words))
        return Certificate(
            analysis,
            protection.name,
            bounds,
            0,
            0,
            0,
            in_order(claims),
            LaterSteps(lambda: tuple(step() for step in steps)),
        )


def _still(description: str) -> Step:
    return Step("derivative.public", f"{description}: reads public values only", "does not move")


def _touches(rows: n.Relation, call: n.Aggregation, protected: frozenset[str]) -> bool:
    return bool(protected) and (
        moves(rows, protected) or (call.argument is not None and moves(call.argument, protected))
    )


class _Reader:
    """A release's rows, branch by branch, and what its measures do in all of them together."""

    def __init__(self, request: Request, space: Space, protected: frozenset[str]) -> None:
        self.space = space
        exact = request.release.exact
        self.inner = flattened(exact.input, exact.keys, protected)
        rows = branches_of(exact.input if self.inner is None else self.inner.rows)
        alone = len(rows) == 1 and self.inner is None
        counted = self.inner is not None and self.inner.counted
        self.branches = [
            Branch(request, space, protected, r, number, alone=alone, counted=counted)
            for number, r in enumerate(rows)
        ]
        one_group = tables_in_one_group(self.branches)
        for branch in self.branches:
            branch.one_group = one_group

    def curve(
        self, measure: Measure, call: n.Aggregation
    ) -> tuple[GlobalBound | SmoothSensitivity, Callable[[], Step], set[TableKey]] | None:
        """Give the bound of one measure, its derivation and what it rests on; None if it does not move."""
        parts = [x for b in self.branches if (x := b.summand(measure, call)) is not None]
        if not parts:
            return None
        factor = parts[0].factor  # whole steps are the measure's, in every branch
        caps = {role: cap for x in parts for role, cap in x.caps.items()}
        finite = {role: cap for role, cap in caps.items() if cap is not None}
        each = {role: size for x in parts for role, size in x.each.items()}
        alone = {role: size for role, size in each.items() if size is not None}
        cap = self.space.reach(finite) * factor if len(finite) == len(caps) else None
        rounding = sum((x.rounding for x in parts), quick(0))
        claims = {claim for x in parts for claim in x.claims}

        def step() -> Step:
            return self._derivation(measure, parts, cap)

        if any(x.several > 1 for x in parts):
            # Scales that vary would tell of the row in every group: the cap for all (derivative.listed).
            if cap is None:
                raise CannotBound(
                    "derivative.listed",
                    call,
                    "no public limit bounds the groups together",
                    "declare ranges",
                )
            value = f"all groups together move at most {float(cap * measure.step):.6g} per unit of distance"

            def listed() -> Step:
                return replace(step(), rule="derivative.listed", value=value)

            return GlobalBound(cap + 2 * rounding), listed, claims
        slopes = [term for x in parts for term in x.probe.slopes.values()]
        curve = SmoothSensitivity(
            cap,
            all(term.cap is not None for term in slopes) and all(x.declared for x in parts),
            all(not term.rates for term in slopes) and cap is not None,
            {
                role: x.floor * most * factor
                for x in parts
                for role, most in x.caps.items()
                if most is not None and cap is not None
            },
            lambda beta: [
                replace(motion, rows=None if self.inner is None else self.inner.rows)
                for x in parts
                for motion in x.branch.motions(
                    measure, call, x.value, beta, x.floor, floored=cap is not None
                )
            ],
            lambda beta: _all_of([x.branch.typical(x.value, beta, x.floor) for x in parts]),
            self.space,
            factor,
            rounding,
            each=self.space.reach(alone) * factor if len(alone) == len(each) else None,
            usual=lambda beta: _all_of([x.branch.usual(x.value, beta, x.floor) for x in parts]),
        )
        return curve, step, claims

    def _derivation(self, measure: Measure, parts: list[Moving], cap: Fraction | None) -> Step:
        """Give the step of the only branch, or one that rests on those of all branches."""
        steps = []
        for x in parts:
            finite = {role: most for role, most in x.caps.items() if most is not None}
            own = self.space.reach(finite) * x.factor if len(finite) == len(x.caps) else None
            gatherings = x.branch.gatherings
            steps.append(
                derivation_of(measure, x.calculus, gatherings, x.caps, own, x.factor, x.value)
            )
        if self.inner is not None:
            limit = "no public limit" if cap is None else f"at most {float(cap * measure.step):.6g}"
            return Step(
                "derivative.sets" if self.inner.counted else "derivative.nested",
                f"{measure.words}: every row of an inner group stands for it",
                f"moves no further than all rows together, {limit} per unit of distance",
                tuple(steps),
            )
        if len(self.branches) == 1:
            return steps[0]
        limit = "no public limit" if cap is None else f"at most {float(cap * measure.step):.6g}"
        return Step(
            "derivative.union",
            f"{measure.words}: rows of {len(self.branches)} branches",
            f"branches of one table add up, {limit} per unit of distance",
            tuple(steps),
        )


def _all_of(sizes: list[float | None]) -> float | None:
    """Add up what is known of each branch; None as soon as one is not known."""
    finite = [size for size in sizes if size is not None]
    return sum(finite) if len(finite) == len(sizes) else None
