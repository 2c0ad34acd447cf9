"""Put rows in: what an output is made of becomes an expression over single noisy numbers of released rows.

In: a traced plan, the rows that it gave, and what is public about the noise. Out: for one row an expression in which
every noisy number has a name of its own, so that noise that stands twice is known to be the same. Groups that the true
answer may lack (a listed key without rows) are left out of averages and extremes where a count does not show them to be
there (noise.gather).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from secant.accuracy.consistency import NOTHING, Agreed, Agreement
from secant.accuracy.trace import Drawn, Gathered, Near, Traced
from secant.noise.intervals import (
    OR_LESS,
    OR_MORE,
    Affine,
    Alone,
    NoisyNumber,
    Span,
    affine_of,
    number_of,
)
from secant.noise.running import Block, RunningSums
from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import columns_of
from secant.schema import types as t

MOST_EXTREMES = 20_000
"""The least or greatest of more numbers than this is stated without an error."""
Values = Mapping[str, object]


class Unresolved(Exception):  # noqa: N818 - control flow between here and `stated`
    """A number is missing, or may be made of rows that the true answer lacks."""


@dataclass(slots=True)
class Resolver:
    """What one output needs to know, row by row; holds public numbers only."""

    traced: Traced
    rows: Mapping[n.Relation, Sequence[Values]]
    """Plans of what is gathered -> their rows."""
    law: Callable[[str], NoisyNumber]
    """Column of a release -> what is public about its noise."""
    span: Callable[[str], Span | None]
    """Column of an order statistic -> the ends of its grid."""
    counts: Mapping[str, str]
    """Measure -> the measure that counts its values."""
    least: Callable[[str, float], float]
    """Measure and shown number -> what the true one is at least, surely for all groups together."""
    agreement: Agreement = NOTHING
    """Numbers that were made to agree with others: each is made of several that were drawn (noise.agree)."""
    noisy: dict[str, NoisyNumber] = field(default_factory=dict)
    known: dict[str, object] = field(default_factory=dict)
    """Spans, and sums of many numbers, by name."""
    groups: dict[n.Relation, dict[tuple[object, ...], list[Values]]] = field(default_factory=dict)
    done: dict[tuple[str, tuple[object, ...]], n.Scalar] = field(default_factory=dict)
    terms: dict[tuple[str, int], n.Scalar] = field(default_factory=dict)
    """What a gathered row brings, by symbol and row; rows and terms live as long as this."""
    sums: dict[int, Affine | None] = field(default_factory=dict)
    """Terms that were read as weighted sums."""

    def resolve(self, scalar: n.Scalar, row: Values) -> n.Scalar:
        """Give an expression over named noisy numbers; raises Unresolved."""
        if isinstance(scalar, n.Column):
            if scalar.name in self.traced.drawn:
                return self._number(scalar, row)
            if scalar.name in self.traced.gathered:
                return self._gathered(scalar, row)
            if row.get(scalar.name) is None:
                raise Unresolved
            return n.Literal(row[scalar.name], scalar.type)
        if isinstance(scalar, n.Case):
            return self._case(scalar, row)

        def change(node: n.Node) -> n.Node:
            if not isinstance(node, n.Scalar):
                raise Unresolved
            return self.resolve(node, row)

        return n.rebuild(scalar, change)

    def _case(self, scalar: n.Case, row: Values) -> n.Scalar:
        for branch in scalar.branches:
            condition = branch.condition
            if not isinstance(condition, n.Column):
                raise Unresolved
            if row.get(condition.name):
                return self.resolve(branch.value, row)
        return self.resolve(scalar.default, row)

    def _number(self, symbol: n.Column, row: Values) -> n.Column:
        drawn = self.traced.drawn[symbol.name]
        name = f"{drawn.column} of row {row.get(drawn.row)}"
        if name not in self.noisy and name not in self.known:
            span = self.span(drawn.column)
            index = _index(row.get(drawn.row))
            agreed = self.agreement.numbers.get((drawn.column, index))
            steps = self.agreement.running.get(drawn.column)
            if span is not None:
                self.known[name] = span
            elif agreed is not None:
                self.known[name] = self._agreed(agreed, drawn.sign)
            elif steps is not None:
                self.known[name] = self._step(steps, drawn, index)
            else:
                value = number_of(row.get(symbol.name))
                if value is None:
                    raise Unresolved
                law = replace(self.law(drawn.column), sign=drawn.sign, measure=drawn.column)
                if law.about is not None:
                    other = f"{law.about[0]} of row {row.get(drawn.row)}"
                    law = replace(law, about=(other, law.about[1]), estimate=None)
                self.noisy[name] = law.at(value)
        return n.Column(name, symbol.type)

    def _agreed(self, agreed: Agreed, sign: int) -> Affine:
        """Name the drawn numbers that a number is made of, and give it as a sum of them."""
        weights: dict[str, float] = {}
        for cell, weight in agreed.weights.items():
            column, row_number = cell
            name = f"{column} as drawn in row {row_number}"
            if name not in self.noisy:
                law = replace(self.law(column), measure=column)
                self.noisy[name] = law.at(self.agreement.drawn[cell])
            weights[name] = weight
        drawn_sum = sum(w * self.noisy[c].value for c, w in weights.items())
        # what is shown is in place of what is computed: rounding is part of the error of the number alone
        alone = Alone(agreed.shown, agreed.error, sign, agreed.whole)
        center = 0.0 if self.agreement.real else agreed.shown - drawn_sum
        return Affine(center, weights, alone)

    def _step(self, steps: RunningSums, drawn: Drawn, index: int) -> Affine:
        """Give a step as the difference of two running sums: those of many steps cancel out (continual.batch)."""
        if index not in steps.places:
            raise Unresolved
        weights: dict[str, float] = {}
        terms = steps.noise.single(*steps.places[index])
        for key, weight in terms.items():
            name = f"{drawn.column} of {key[1]} steps in part {key[0]}"
            if name not in self.noisy:
                law = replace(self.law(drawn.column), sign=drawn.sign, measure=drawn.column)
                self.noisy[name] = replace(
                    law, value=steps.totals[key], error=_alone(steps, key), joint=(steps, key)
                )
            weights[name] = weight
        shown = sum(w * steps.totals[cell] for cell, w in terms.items())
        alone = Alone(shown, lambda level: steps.error(terms, level), drawn.sign, steps.step == 1)
        return Affine(0.0, weights, alone)

    # ── groups of released rows ──────────────────────────────────────────────────────────────────

    def _gathered(self, symbol: n.Column, row: Values) -> n.Scalar:
        gathered = self.traced.gathered[symbol.name]
        key = tuple(row.get(outside) for outside, _ in gathered.keys)
        members = self._members(gathered, key)
        if gathered.near is not None:
            key = (*key, row.get(gathered.near.place))
        if (symbol.name, key) not in self.done:
            if gathered.near is not None:
                members = self._near(gathered, gathered.near, members, key[-1])
            self.done[symbol.name, key] = self._group(symbol, gathered, members, key)
        return self.done[symbol.name, key]

    def _near(
        self, gathered: Gathered, near: Near, members: list[Values], position: object
    ) -> list[Values]:
        """Give the rows of a frame; where rows that are not there would shift it, all must be there (noise.window)."""
        if not near.running and not all(self._sure(gathered, m) for m in members):
            raise Unresolved
        own = number_of(position)
        if own is None:
            raise Unresolved
        nearby = []
        for member in members:
            there = number_of(member[near.place])
            if there is None:
                raise Unresolved
            away = there - own
            if (near.start is None or away >= near.start) and (
                near.end is None or away <= near.end
            ):
                nearby.append(member)
        if not nearby:
            raise Unresolved
        return nearby

    def _members(self, gathered: Gathered, key: tuple[object, ...]) -> list[Values]:
        if gathered.rows not in self.groups:
            groups: dict[tuple[object, ...], list[Values]] = {}
            for one in self.rows[gathered.rows]:
                groups.setdefault(tuple(one[inside] for _, inside in gathered.keys), []).append(one)
            self.groups[gathered.rows] = groups
        members = self.groups[gathered.rows].get(key)
        if not members:
            raise Unresolved  # a sum of nothing is NULL; a key that is met nowhere is not understood
        return members

    def _group(
        self, symbol: n.Column, gathered: Gathered, members: list[Values], key: tuple[object, ...]
    ) -> n.Scalar:
        name = f"{symbol.name} {key!r}"
        function = gathered.call.function
        if gathered.argument is None:
            return self._present(name, sum(self._sure(gathered, m) for m in members), len(members))
        terms = [self._term(symbol.name, gathered.argument, m) for m in members]
        if function == "sum":
            there = gathered.single or (lambda: all(map(self._is_there, terms)))
            return self._total(name, terms, there)
        sure = [gathered.single or self._is_there(term) for term in terms]
        if function in ("min", "max"):
            return self._extreme(function, terms, sure)
        if function == "count":
            raise Unresolved  # which of them are NULL in truth is not told
        total = self._total(name, terms, all(sure))
        if not all(self._counts_only(term) for term in terms) and not all(sure):
            raise Unresolved
        least = max(1, sum(sure))  # an average of no group is NULL: there is none to hold
        return n.Arithmetic("/", total, self._present(f"{name} rows", least, len(sure)))

    def _present(self, name: str, least: int, most: int) -> n.Scalar:
        if least == most:
            return n.Literal(float(most), t.DOUBLE)
        self.known[name] = (float(least), float(most))
        return n.Column(name, t.DOUBLE)

    def _term(self, symbol: str, argument: n.Scalar, member: Values) -> n.Scalar:
        """Give what a gathered row brings; many windows gather it again."""
        if (symbol, id(member)) not in self.terms:
            self.terms[symbol, id(member)] = self.resolve(argument, member)
        return self.terms[symbol, id(member)]

    def _total(self, name: str, terms: list[n.Scalar], sure: bool | Callable[[], bool]) -> n.Scalar:
        """Add up; rows that may not be there must add nothing then, as counts and sums do."""
        constant, weights = 0.0, dict[str, float]()
        for term in terms:
            if id(term) not in self.sums:
                self.sums[id(term)] = affine_of(term, self.noisy, self.known, sure=True)
            one = self.sums[id(term)]
            if one is None or one.constant:
                there = sure() if callable(sure) else sure
                if not there or (one is None and len(terms) > MOST_EXTREMES):
                    raise Unresolved
                if one is None:
                    return _added(terms)
            constant += one.constant
            for c, w in one.weights.items():
                weights[c] = weights.get(c, 0.0) + w
        self.known[name] = Affine(constant, weights)
        return n.Column(name, t.DOUBLE)

    def _extreme(self, function: str, terms: list[n.Scalar], sure: list[bool]) -> n.Scalar:
        if len(terms) > MOST_EXTREMES:
            raise Unresolved
        arguments = []
        for term, there in zip(terms, sure, strict=True):
            # No group without rows beats a greatest number that is not below zero.
            harmless = function == "max" and self._not_negative(term)
            absent = OR_MORE if function == "min" else OR_LESS
            arguments.append(term if there or harmless else n.Call(absent, (term,)))
        if len(arguments) == 1:
            return arguments[0]
        return n.Call("least" if function == "min" else "greatest", tuple(arguments))

    def _not_negative(self, term: n.Scalar) -> bool:
        one = affine_of(term, self.noisy, self.known, sure=True)
        return (
            one is not None
            and not one.constant
            and all(w >= 0 and self.noisy[c].sign == 1 for c, w in one.weights.items())
        )

    def _counts_only(self, term: n.Scalar) -> bool:
        measures = [self.noisy[c].measure if c in self.noisy else "" for c in columns_of(term)]
        return all(self.counts.get(measure) == measure for measure in measures)

    def _is_there(self, term: n.Scalar) -> bool:
        """Whether counts show that a number is there in the true answer, and is not NULL."""
        names = columns_of(term)
        for name in names:
            if name not in self.noisy:
                return False
            row = name.rsplit(" of row ", 1)[1] if " of row " in name else ""
            count = self.counts.get(self.noisy[name].measure)
            shown = self.noisy.get(f"{count} of row {row}")
            if count is None or shown is None or self.least(count, shown.value) < 1:
                return False
        return bool(names)

    def _sure(self, gathered: Gathered, member: Values) -> bool:
        """Whether some count shows that a gathered row is there in the true answer."""
        for symbol, drawn in self.traced.drawn.items():
            if symbol in member and self.counts.get(drawn.column) == drawn.column:
                value = number_of(member[symbol])
                if value is not None and self.least(drawn.column, value) >= 1:
                    return True
        return False


def _alone(steps: RunningSums, key: Block) -> Callable[[Fraction], float | None]:
    return lambda level: steps.error({key: 1.0}, level)


def _index(value: object) -> int:
    """Give the number of a released row; it has none where the row is missing."""
    return value if isinstance(value, int) else -1


def _added(terms: list[n.Scalar]) -> n.Scalar:
    """Add up pairwise, so that no expression gets deep."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        odd = [terms[-1]] if len(terms) % 2 else []
        terms = [n.Arithmetic("+", a, b) for a, b in pairs] + odd
    return terms[0]


def noise_behind(scalar: n.Scalar, traced: Traced) -> dict[str, Drawn]:
    """Give all noisy numbers that an expression rests on, also through what it gathers."""
    drawn: dict[str, Drawn] = {}
    for name in columns_of(scalar):
        if name in traced.drawn:
            drawn[name] = traced.drawn[name]
        elif name in traced.gathered:
            argument = traced.gathered[name].argument
            columns = traced.gathered[name].columns
            if argument is not None:
                drawn |= noise_behind(argument, traced)
            else:  # how many groups there are, their counts tell
                drawn |= {c: traced.drawn[c] for c in columns if c in traced.drawn}
    return drawn
