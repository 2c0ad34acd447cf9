"""What should be said before anything is spent: errors as large as values, keys that stay hidden, words that fit none.

In: a job, the question's own plan, the policy. Out: cautions, for `explain`, and for `query` before it reserves. All of
them follow from what the analyst wrote and what everybody may know; a caution that looked at protected rows would tell
about them. Nothing is refused here.
"""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from secant.accuracy.forecast import Forecast
from secant.accuracy.sizes import Guess, usual_groups
from secant.errors import WARNINGS
from secant.numeric import interval as iv
from secant.numeric.interval import EVERYTHING
from secant.plan import nodes as n
from secant.plan.facts.cardinality import expected_share, one_table_rows, rows_of
from secant.plan.facts.ranges import NOTHING_DECLARED, Ranges, as_number, declared, ranges_of
from secant.policy.coverage import is_protected
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.release.release_plan import Keys, ReleasePlan
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.summands import each_row

CARELESS_EPSILON = 10
CARELESS_DELTA = Fraction(1, 1000)
RARE = 1 / 2000
"""A share of a table's rows this small is likely to drown."""
DROWNED = 0.4
"""Noise this large beside what is expected is worth a word."""
_CODES = frozenset(code for code, _ in WARNINGS)
Count = Callable[[str], int | None]
"""Rows of a table whose number is public."""


@frozen
class Caution:
    """A warning: a stable code, one sentence, one thing to do."""

    code: str
    message: str
    hint: str

    def __post_init__(self) -> None:
        if self.code not in _CODES:
            raise AssertionError(f"{self.code} is not listed in WARNINGS")

    def __str__(self) -> str:
        return f"{self.code}  {self.message}" + (f"\n  Now: {self.hint}" if self.hint else "")

    def to_dict(self) -> dict[str, str]:
        """Give the warning as plain values."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


def warnings_of(
    job: ReleasePlan,
    plan: n.Relation,
    policy: Policy,
    protections: tuple[Protection, ...],
    forecast: Forecast,
    keys: Mapping[str, Keys | None],
    facts: PublicFacts,
) -> tuple[Caution, ...]:
    """Give all that should be known before a question is paid for, each once."""
    count = facts.count
    drowned = list(_drowned(job, policy, forecast, count))
    found = [
        *drowned,
        *([] if drowned else _rare(job, policy, forecast.expected, keys, facts)),
        *_hidden_keys(job, protections),
        *_strange_literals(plan, policy),
        *_careless(job, policy, protections, plan, count),
    ]
    return tuple(dict.fromkeys(found))


# ── the error beside the value ───────────────────────────────────────────────────────────────────


def _drowned(
    job: ReleasePlan, policy: Policy, forecast: Forecast, count: Count
) -> Iterator[Caution]:
    for output, error in forecast.errors.items():
        if output in forecast.ranks:
            continue  # ranks have no range that is public
        width = _width(job, output)
        most = _largest(job, output, policy, count) if width is None else width
        # Who knows nothing of an average is off by half of its range at most.
        telling = most if width is None else width / 2
        if error is not None and telling is not None and most is not None and error >= telling:
            about = "about " if output in forecast.rough else ""
            yield Caution(
                "WRN-001",
                f"the error of {output}, {about}{_number(error)} at {_percent(job.level)}, is as large as its whole "
                f"range ({_number(most)})",
                "ask with a larger epsilon, for fewer or coarser groups, or for less at once",
            )


def _rare(
    job: ReleasePlan,
    policy: Policy,
    expected: Mapping[str, Guess],
    keys: Mapping[str, Keys | None],
    facts: PublicFacts,
) -> Iterator[Caution]:
    for b in job.prepared.bounded:
        guess = expected.get(b.release.name)
        if guess is not None:
            yield from _small(job, b, guess)
            continue
        rows = b.release.original.input
        share = expected_share(rows, policy, facts.count, facts.fan)
        share /= max(1, usual_groups(keys[b.release.name] or []))
        if share < RARE and b.release.measures:
            yield Caution(
                "WRN-005",
                f"by its conditions and groups a number may rest on one row in {_number(1 / share)}: the noise is "
                "the same for few rows as for many, so it may drown",
                "ask for less detail, or see with `secant explain` which error to expect",
            )


def _small(job: ReleasePlan, b: CertifiedRelease, guess: Guess) -> Iterator[Caution]:
    """Hold noise against the size that declared facts lead to expect: a usual answer may be drowned."""
    for measure, call in zip(b.release.measures, b.release.exact.aggregations, strict=True):
        low, high = guess.steps.get(measure.column, (0.0, 0.0))
        size = abs(high) if low == high else 0.0
        if not size:
            continue
        # Where a limit is chosen: what noise would do if it is what one row adds.
        one = each_row(call, measure.step)
        error = job.noise.noise[measure.column].usual_error(job.level, one)
        if error is not None and error >= DROWNED * size:
            noise, usual = float(error * measure.step), size * float(measure.step)
            yield Caution(
                "WRN-005",
                f"by declared sizes {measure.words} may rest on about {_number(guess.rows)} rows and come to "
                f"{_number(usual)}, and noise moves it by {_number(noise)} or more at {_percent(job.level)}",
                "ask for less detail, or with a larger epsilon",
            )


def _width(job: ReleasePlan, output: str) -> float | None:
    """Give how wide the range is that the answer keeps an output in: an average, and what is made of averages."""
    expression = job.traced.made_of(output)
    range_ = EVERYTHING if expression is None else Ranges(NOTHING_DECLARED).of(expression)
    if not range_.bounded:
        return None
    low, high = range_.ends()
    return float(high - low)


def _largest(job: ReleasePlan, output: str, policy: Policy, count: Count) -> float | None:
    """Give how far two true values of an output can be apart, if that is public."""
    expression = job.traced.made_of(output)
    while isinstance(expression, (n.Attempt, n.Clamp)):
        expression = expression.operand
    if isinstance(expression, n.Call) and expression.function in ("greatest", "least"):
        expression = expression.arguments[0]
    if not isinstance(expression, n.Column):
        return None
    for b in job.prepared.bounded:
        for call, measure in zip(b.release.original.aggregations, b.release.measures, strict=False):
            alone = len(b.release.original.aggregations) == len(b.release.measures)
            if alone and measure.column == expression.name:
                return _span_of(call, b.release.original.input, policy, count)
    return None


def _span_of(call: n.Aggregation, rows: n.Relation, policy: Policy, count: Count) -> float | None:
    """Give how large a count or a sum can get, from the declared size of its one table."""
    ranges = ranges_of(rows, policy, lambda inner: None)
    if call.function == "count" and call.distinct and isinstance(call.argument, n.Column):
        origin = ranges.origins.get(call.argument.name)
        values = None if origin is None else policy.column(*origin).values
        return None if values is None else float(len(values))
    size = one_table_rows(rows, policy, count)
    if size is None:
        return None
    if call.function == "count":
        return float(size)
    if call.function == "sum" and call.argument is not None and ranges.of(call.argument).bounded:
        low, high = ranges.of(call.argument).ends()
        return float(size * max(abs(low), abs(high)))
    return None


def trusting(forecast: Forecast) -> Iterator[Caution]:
    """Say which errors hold only if as many rows come as declared facts lead to expect."""
    for output, rows in forecast.rough.items():
        yield Caution(
            "WRN-008",
            f"the error of {output} was foreseen for about {_number(rows)} rows behind each number, by declared sizes: "
            "with fewer it is larger",
            "read the ends beside the answer; they hold in any case",
        )


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


def _hidden_keys(job: ReleasePlan, protections: tuple[Protection, ...]) -> Iterator[Caution]:
    units = any(p.kind == "unit" for p in protections)
    for b in job.prepared.bounded:
        choice = job.noise.choices.get(b.release.name)
        if choice is not None and choice.groups:
            what = "units" if units else "rows of data"
            more = ""
            if b.release.weighed is not None:  # in four groups a unit weighs half as much in each
                more = f", {2 * choice.units:,} where each is in four groups,"
            yield Caution(
                "WRN-002",
                f"groups with fewer than about {choice.units:,} {what}{more} are hidden",
                "declare `values` or a `range` for the grouped columns, group by coarser ones, or ask with a larger "
                "epsilon or delta",
            )


# ── literals ─────────────────────────────────────────────────────────────────────────────────────


def _strange_literals(plan: n.Relation, policy: Policy) -> Iterator[Caution]:
    ranges = ranges_of(plan, policy, lambda inner: None)
    for node in n.walk(plan):
        if isinstance(node, n.Compare):
            for a, b in ((node.left, node.right), (node.right, node.left)):
                if isinstance(b, n.Literal):
                    op = node.op if a is node.left else _TURNED[node.op]
                    yield from _strange(ranges, a, op, b.value)
        elif isinstance(node, n.InList):
            for item in node.items:
                if isinstance(item, n.Literal):
                    yield from _strange(ranges, node.operand, "=", item.value)


_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _strange(ranges: Ranges, scalar: n.Scalar, op: str, value: object) -> Iterator[Caution]:
    origin = _origin(ranges, scalar)
    if origin is None or value is None:
        return
    name, facts = ".".join(origin), ranges.policy.column(*origin)
    text = _literal_text(value)
    if facts.values is not None and op in ("=", "<>"):
        if not any(_same(value, v) for v in facts.values):
            near = _nearest(value, facts.values)
            yield Caution(
                "WRN-003",
                f"{text} is not among the declared values of {name}",
                f"did you mean {_literal_text(near)}?"
                if near is not None
                else "see the policy for its values",
            )
        return
    number, range_ = as_number(value), declared(ranges.policy, *origin)
    if facts.range is None or number is None or iv.meet(range_, iv.point(number)) is not None:
        return
    low, high = (_literal_text(end) for end in facts.range)
    yield Caution(
        "WRN-004",
        f"{text} lies outside the declared range of {name}: as declared, {_outcome(op, number, range_)}",
        f"the range is [{low}, {high}]",
    )


def _outcome(op: str, number: Fraction, range_: iv.Interval) -> str:
    above = range_.high is not None and number > range_.high
    passes = op == "<>" or (op in ("<", "<=") if above else op in (">", ">="))
    return "every row passes" if passes else "no row passes"


def _origin(ranges: Ranges, scalar: n.Scalar) -> tuple[str, str] | None:
    """Follow a column, or a cast of one, through renames to where it is declared."""
    source: n.Scalar | None = scalar
    while ranges.origin(source) is None and isinstance(
        source, (n.Cast, n.Attempt, n.Column, n.Outer)
    ):
        source = (
            source.operand
            if isinstance(source, (n.Cast, n.Attempt))
            else ranges.definitions.get(source.name)
        )
    return ranges.origin(source)


def _same(a: object, b: object) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return str(a) == str(b)
    left, right = as_number(a), as_number(b)
    return a == b if left is None or right is None else left == right


def _nearest(value: object, values: tuple[object, ...]) -> object | None:
    """Give the declared value that was most likely meant; letters of another case count as the same."""
    if isinstance(value, str):
        folded = {str(v).casefold().strip(): v for v in values if isinstance(v, str)}
        close = difflib.get_close_matches(value.casefold().strip(), list(folded), n=1, cutoff=0.6)
        return folded[close[0]] if close else None
    number = as_number(value)
    numbers = [
        (abs(x - number), v)
        for v in values
        if number is not None and (x := as_number(v)) is not None
    ]
    return min(numbers, key=lambda pair: pair[0])[1] if numbers else None


def _literal_text(value: object) -> str:
    return f"'{value}'" if isinstance(value, (datetime.date, str)) else str(value)


# ── careless amounts ─────────────────────────────────────────────────────────────────────────────


def _careless(
    job: ReleasePlan,
    policy: Policy,
    protections: tuple[Protection, ...],
    plan: n.Relation,
    count: Count,
) -> Iterator[Caution]:
    for protection in protections:
        epsilon, delta = job.noise.costs.get(protection.name, (Fraction(0), Fraction(0)))
        if epsilon > CARELESS_EPSILON:
            yield Caution(
                "WRN-006",
                f"epsilon {_number(float(epsilon))} hides next to nothing under {protection.name}: an outcome may be "
                f"e^{_number(float(epsilon))} times as likely with somebody as without",
                f"ask with an epsilon of {CARELESS_EPSILON} at most; 1 or less is usual",
            )
        if not delta:
            continue
        sizes = {
            s: r for s in _covered(plan, policy, protection) if (r := rows_of(s, policy, count))
        }
        table = max(sizes, key=lambda s: sizes[s], default="")
        if delta > CARELESS_DELTA or (table and delta > Fraction(1, sizes[table])):
            limit = (
                "1 in 1,000"
                if delta > CARELESS_DELTA
                else f"1 in the {sizes[table]:,} rows of {table}"
            )
            yield Caution(
                "WRN-007",
                f"delta {_number(float(delta))} is more than {limit}: with that chance a release under "
                f"{protection.name} may show somebody openly",
                "ask with a smaller delta, far below one in the number of people",
            )


def _covered(plan: n.Relation, policy: Policy, protection: Protection) -> list[str]:
    """Give the tables of a question that a protection covers."""
    tables = sorted({s.table.lower() for s in n.walk(plan) if isinstance(s, n.Scan)})
    return [t for t in tables if t in protection.distance or is_protected(t, policy, (protection,))]


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "any number"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _percent(level: Fraction) -> str:
    return f"{float(level) * 100:g} %"
