"""The stages in order, and nowhere else: text, plan, enforcement, proof, noise, budget, answer.

`Connection.sql` is the story; everything before `reserve` reads no protected row and costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

from secant.analysis import explain as wording
from secant.analysis.portfolio import Bounded, Prepared, RawRows, prepare
from secant.errors import InternalError, PolicyError, Refused, SecantError, Span, SqlError, UsageError
from secant.ledger.amounts import DELTA_UNITS, EPSILON_UNITS, Budget, Charge, as_written
from secant.ledger.store import Ledger
from secant.mechanisms.discrete_laplace import discrete_laplace_error
from secant.numeric.parameters import delta_of, epsilon_of, level_of
from secant.plan import nodes as n
from secant.plan.from_sql import from_sql
from secant.plan.rewrite import normalise
from secant.release.answer import Answer, plain
from secant.release.backend import Backend
from secant.release.lower import lower
from secant.release.run import Job, Shown, check_job, finish, look_up_keys, plan_release, run, unnoised
from secant.release.shares import Calibrated, calibrate
from secant.release.sources import open_source
from secant.terms.catalog import Catalog
from secant.terms.events import ApproximateEvent, PureEvent
from secant.terms.policy import Policy, Protection
from secant.terms.policy_check import check_policy
from secant.terms.policy_file import load_policy

Number = float | int | str | Decimal | Fraction

__all__ = ["Account", "Answer", "Connection", "Explanation", "connect"]


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of one protection, exact."""

    epsilon: Fraction
    delta: Fraction
    spent_epsilon: Fraction
    spent_delta: Fraction
    remaining_epsilon: Fraction
    remaining_delta: Fraction

    def to_dict(self) -> dict[str, Any]:
        """Give spent and remaining amounts as plain numbers."""
        return {
            "spent": {"epsilon": float(self.spent_epsilon), "delta": float(self.spent_delta)},
            "remaining": {"epsilon": float(self.remaining_epsilon), "delta": float(self.remaining_delta)},
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer would be private, and what it would cost. Made without reading data."""

    text: str
    record: Mapping[str, Any]
    statements: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain values."""
        return dict(self.record)


def connect(
    source: str | None = None, *, policy: str | Path | Policy, ledger: str | Path | None = None
) -> Connection:
    """Open a data source under a policy.

    Args:
        source: `duckdb:FILE`, `parquet:DIR` or `csv:DIR`; by default what the policy names.
        policy: The policy file, or a policy.
        ledger: Where the budget is kept; by default beside the policy file.
    """
    read = policy if isinstance(policy, Policy) else load_policy(policy)
    beside = read.path.parent if read.path is not None else None
    place = ledger if ledger is not None else read.ledger
    if place is None:
        if read.path is None:
            raise UsageError(
                "USE-001",
                "a policy without a file needs a place for its ledger",
                hint="pass ledger='FILE' to connect",
            )
        place = read.path.with_suffix(".ledger")
    elif ledger is None and beside is not None and "://" not in str(place):
        place = beside / str(place)
    backend = open_source(source, beside=None) if source else open_source(read.source, beside=beside)
    try:
        problems = [p for p in check_policy(read, backend.catalog()) if p.severity == "error"]
        if problems:
            raise PolicyError(
                "POL-002",
                f"the policy does not fit the data source ({len(problems)} mistakes)",
                details=tuple(str(p) for p in problems),
                hint="correct the lines above",
            )
        return Connection(backend, read, place)
    except BaseException:
        backend.close()
        raise


class Connection:
    """An open data source with its policy and its ledger. Close it, or use it as a context manager."""

    def __init__(self, backend: Backend, policy: Policy, ledger: str | Path) -> None:
        self.policy = policy
        self._backend = backend
        self._place = ledger
        self._ledger: Ledger | None = None
        self._checked: set[Any] = set()

    def close(self) -> None:
        """Let go of the data and of the ledger."""
        self._backend.close()
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def catalog(self) -> Catalog:
        """Names and types of the tables."""
        return self._backend.catalog()

    @property
    def ledger(self) -> Ledger:
        """The ledger, opened when it is first needed."""
        if self._ledger is None:
            budgets = {p.name: Budget.of(p.epsilon, p.delta) for p in self.policy.protections}
            self._ledger = Ledger.open(self._place, budgets)
        return self._ledger

    @property
    def budget(self) -> dict[str, Account]:
        """What each protection has, has spent, and has left."""
        found = {}
        for name, b in self.ledger.balances().items():
            amounts = [
                (Fraction(x.epsilon, EPSILON_UNITS), Fraction(x.delta, DELTA_UNITS))
                for x in (b.budget, b.spent, b.remaining)
            ]
            (e, d), (se, sd), (re, rd) = amounts
            found[name] = Account(e, d, se, sd, re, rd)
        return found

    def protection(self, name: str) -> Protection:
        """Give a protection by name."""
        found = self.policy.protection(name)
        if found is None:
            known = ", ".join(p.name for p in self.policy.protections)
            raise UsageError("USE-005", f"there is no protection {name!r}", hint=f"there are: {known}")
        return found

    # ── the story ────────────────────────────────────────────────────────────────────────────────

    def sql(
        self,
        text: str,
        *,
        epsilon: Number,
        delta: Number | None = None,
        level: Number = 0.95,
        protection: str | None = None,
        analyst: str = "",
    ) -> Answer:
        """Answer a query privately and charge its price to every protection that it touches."""
        with _no_surprises(text):
            budget = epsilon_of(as_written(epsilon, what="epsilon", code="USE-002"))
            confidence = level_of(as_written(level, what="level", code="USE-004"))
            in_force = self._in_force(protection)
            prepared = self._prepare(text, in_force)
            noise = calibrate(prepared.bounded, in_force, budget, _deltas(in_force, delta))
            job = plan_release(prepared, noise, confidence, self._backend)
            check_job(job, self._backend, self._checked)
            if not prepared.bounded:
                return self._answer(finish(job, {}, self._backend), job, in_force, protection, None)
            keys = look_up_keys(job, self._backend)
            with self.ledger.reserve(_charges(noise), analyst=analyst, note=_note(job)) as permit:
                shown = run(job, keys, self._backend, permit)
                permit.settle()
            return self._answer(shown, job, in_force, protection, permit.release_id)

    def explain(
        self,
        text: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        protection: str | None = None,
    ) -> Explanation:
        """Show the derivation, the noise and the statements of a query. Spends nothing, reads no data."""
        with _no_surprises(text):
            confidence = level_of(as_written(level, what="level", code="USE-004"))
            in_force = self._in_force(protection)
            prepared = self._prepare(text, in_force)
            budget = epsilon_of(as_written(1 if epsilon is None else epsilon, what="epsilon", code="USE-002"))
            noise = calibrate(prepared.bounded, in_force, budget, _deltas(in_force, delta))
            job = plan_release(prepared, noise, confidence, self._backend)
            return _explanation(text, job, in_force, budget, assumed=epsilon is None)

    def inspect(
        self,
        text: str,
        *,
        epsilon: Number = 1,
        delta: Number | None = None,
        level: Number = 0.95,
        protection: str | None = None,
    ) -> list[dict[str, Any]]:
        """For the data owner only: the true answer beside what a release would do. Releases nothing."""
        with _no_surprises(text):
            started = time.perf_counter()
            budget = epsilon_of(as_written(epsilon, what="epsilon", code="USE-002"))
            confidence = level_of(as_written(level, what="level", code="USE-004"))
            in_force = self._in_force(protection)
            plan = normalise(from_sql(text, self.catalog))
            prepared = self._prepare(text, in_force)
            noise = calibrate(prepared.bounded, in_force, budget, _deltas(in_force, delta))
            job = plan_release(prepared, noise, confidence, self._backend)
            check_job(job, self._backend, self._checked)
            compiled = time.perf_counter()
            exact = self._backend.rows(lower(plan, self._backend.dialect))
            answered = time.perf_counter()
            softened = unnoised(job, look_up_keys(job, self._backend), self._backend)
            released = time.perf_counter()
            seconds = {
                "compile": compiled - started,
                "plain": answered - compiled,
                "release": released - answered,
            }
            return _inspection(job, exact, softened, seconds)

    # ── stages ───────────────────────────────────────────────────────────────────────────────────

    def _prepare(self, text: str, in_force: tuple[Protection, ...]) -> Prepared:
        plan = normalise(from_sql(text, self.catalog))
        outcome = prepare(plan, self.policy, in_force, self.catalog)
        if isinstance(outcome, Prepared):
            return outcome
        if isinstance(outcome, RawRows):
            raise Refused(
                "REF-102",
                f"the query shows rows of the protected table {outcome.scan.table}",
                text=text,
                span=outcome.scan.span,
                hint="ask for counts, sums or averages instead",
            )
        first = outcome[0]
        raise Refused(
            "REF-101",
            "no analysis can bound this query",
            text=text,
            span=_span(first.node),
            details=tuple(dict.fromkeys(wording.refusal_line(r) for r in outcome)),
            hint=first.hint,
        )

    def _in_force(self, chosen: str | None) -> tuple[Protection, ...]:
        """All protections hold together; among declared alternatives a query may choose one."""
        if not self.policy.protections:
            raise PolicyError(
                "POL-003", "the policy protects nothing", hint="add a [protections.NAME] section"
            )
        if chosen is None:
            return self.policy.protections
        self.protection(chosen)
        if chosen not in self.policy.alternatives:
            raise UsageError(
                "USE-005",
                f"{chosen} is not an alternative: all protections of the policy hold together",
                hint="the data owner can list it under `alternatives`",
            )
        others = set(self.policy.alternatives) - {chosen}
        return tuple(p for p in self.policy.protections if p.name not in others)

    def _answer(
        self,
        shown: Shown,
        job: Job,
        in_force: tuple[Protection, ...],
        chosen: str | None,
        release_id: str | None,
    ) -> Answer:
        uncovered = [p.name for p in self.policy.protections if p not in in_force]
        accounts = {name: a.to_dict() for name, a in self.budget.items() if name in job.noise.costs}
        return Answer(
            columns=list(shown.columns),
            rows=shown.rows,
            guarantee=[_guarantee(p, job.noise, uncovered) for p in in_force],
            error={"level": float(job.level), "values": shown.errors},
            mechanisms=_mechanisms(job),
            budget=accounts,
            release_id=release_id,
        )


@contextmanager
def _no_surprises(text: str) -> Iterator[None]:
    """Let typed errors pass with the user's text for carets; anything else is a bug and says nothing of data."""
    try:
        yield
    except SecantError as error:
        if error.span is not None and not error.text:
            error.text = text
        raise
    except RecursionError:
        raise SqlError(
            "SQL-007", "the query is nested too deeply", hint="flatten its parentheses or subqueries"
        ) from None
    except (AssertionError, KeyError, IndexError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise InternalError(
            "BUG-001",
            f"an invariant of Secant broke ({type(error).__name__})",
            hint="report the query, without data; budget that was reserved stays spent if anything was sent",
        ) from error


def _deltas(protections: tuple[Protection, ...], delta: Number | None) -> dict[str, Fraction]:
    if delta is None:
        return {p.name: p.delta / 100 for p in protections}
    asked = delta_of(as_written(delta, what="delta", code="USE-003"))
    return {p.name: asked for p in protections}


def _charges(noise: Calibrated) -> list[Charge]:
    charges = []
    for name, (epsilon, delta) in noise.costs.items():
        if epsilon or delta:
            event = ApproximateEvent(epsilon, delta) if delta else PureEvent(epsilon)
            charges.append(Charge.of(name, epsilon, delta, event=event))
    return charges


def _note(job: Job) -> dict[str, Any]:
    """What the ledger keeps of a release: the shape, never the answer."""
    return {"measures": sum(len(b.release.measures) for b in job.prepared.bounded)}


def _span(node: n.Node | None) -> Span | None:
    if node is None:
        return None
    found = getattr(node, "span", None)
    return found if isinstance(found, Span) else None


def protects(protection: Protection) -> str:
    """Say in words what a protection hides."""
    if protection.kind == "rows":
        what = "any row" if protection.tables is None else "any row of " + ", ".join(protection.tables)
        return f"{what} replaced by another" if protection.replace else f"{what} added or removed"
    if protection.kind == "unit" and protection.unit is not None:
        return f"all data of one {protection.unit[0]} ({protection.unit[1]}) added or removed"
    return "the values of protected cells"


def _guarantee(protection: Protection, noise: Calibrated, uncovered: list[str]) -> dict[str, Any]:
    epsilon, delta = noise.costs.get(protection.name, (Fraction(0), Fraction(0)))
    found: dict[str, Any] = {
        "protection": protection.name,
        "protects": protects(protection),
        "epsilon": _up(epsilon),
        "delta": _up(delta),
    }
    if uncovered:
        found["not_covered"] = uncovered
    return found


def _up(value: Fraction) -> float:
    """Show a price rounded up to nine digits."""
    scaled = -((-value * 10**12) // 1)
    return float(Fraction(scaled, 10**12)) if value >= Fraction(1, 10**6) else float(value)


def _mechanisms(job: Job) -> list[dict[str, Any]]:
    found = []
    for b in job.prepared.bounded:
        for measure in b.release.measures:
            noise = job.noise.noise[measure.column]
            found.append(
                {
                    "measure": measure.words,
                    "mechanism": "none" if noise.scale is None else "discrete laplace",
                    "epsilon": float(noise.epsilon),
                    "step": float(measure.step),
                    "scale": 0.0 if noise.scale is None else float(noise.scale * measure.step),
                }
            )
        choice = job.noise.choices.get(b.release.name)
        if choice is not None:
            found.append({"measure": "keys", "mechanism": "threshold", "threshold": choice.threshold})
    return found


def _explanation(
    text: str, job: Job, in_force: tuple[Protection, ...], epsilon: Fraction, *, assumed: bool
) -> Explanation:
    lines: list[str] = []
    if not job.prepared.bounded:
        lines.append("The query reads no protected table: it is answered exactly and costs nothing.")
    for b in job.prepared.bounded:
        lines += wording.summary(b)
        lines.append(f"  noise at epsilon {float(epsilon):g}{' (assumed)' if assumed else ''}:")
        lines += [f"    {line}" for line in _noise_lines(b, job)]
    if job.prepared.bounded:
        lines.append("guarantee")
        for p in in_force:
            cost, delta = job.noise.costs[p.name]
            lines.append(f"  {p.name}: epsilon {_up(cost):g}, delta {_up(delta):g}; hides {protects(p)}")
    record = {
        "query": text,
        "exact": not job.prepared.bounded,
        "releases": [_release_record(b, job) for b in job.prepared.bounded],
        "guarantee": [_guarantee(p, job.noise, []) for p in in_force],
        "statements": list(job.statements.values()),
    }
    statements = tuple(job.statements.values()) or (lower(job.prepared.post),)
    return Explanation("\n".join(lines), record, statements)


def _noise_lines(b: Bounded, job: Job) -> list[str]:
    lines = []
    for measure in b.release.measures:
        noise = job.noise.noise[measure.column]
        if noise.scale is None:
            lines.append(f"{measure.words}: none, nothing protected is seen")
            continue
        error = discrete_laplace_error(noise.scale, job.level) * measure.step
        lines.append(
            f"{measure.words}: discrete Laplace of scale {float(noise.scale * measure.step):.6g} "
            f"on a grid of {float(measure.step):g} (epsilon {float(noise.epsilon):.4g}); "
            f"within {float(error):.6g} at {float(job.level):.0%}"
        )
    choice = job.noise.choices.get(b.release.name)
    if choice is not None:
        lines.append(f"keys: shown from a noisy count of {choice.threshold} on (delta {float(choice.delta):g})")
    return lines


def _release_record(b: Bounded, job: Job) -> dict[str, Any]:
    return {
        "enforced": list(b.release.notes),
        "certificates": [
            {
                "protection": c.protection,
                "room": c.room,
                "derivation": wording.derivation(c),
                "sensitivity": {
                    m.column: plain(c.bounds[m.column].value * m.step) for m in b.release.measures
                },
            }
            for c in b.certificates
        ],
        "refusals": [wording.refusal_line(r) for r in b.tried],
        "noise": _noise_lines(b, job),
    }


def _inspection(
    job: Job, exact: list[tuple[object, ...]], softened: Shown, seconds: dict[str, float]
) -> list[dict[str, Any]]:
    """One record an output column. For several rows, errors are put together as lengths of vectors."""
    found = []
    measures = {m.column: m for b in job.prepared.bounded for m in b.release.measures}
    for index, column in enumerate(softened.columns):
        truth = [plain(row[index]) for row in exact]
        soft = [plain(row[index]) for row in softened.rows]
        errors = [e[index] for e in softened.errors or []]
        known = [e for e in errors if e is not None]
        scalar = job.traced.made_of.get(column)
        used = [m for c, m in measures.items() if scalar is not None and c in _columns(scalar)]
        scales = [float((job.noise.noise[m.column].scale or 0) * m.step) for m in used]
        numbers = [float(v) for v in truth if isinstance(v, (int, float)) and not isinstance(v, bool)]
        length = sum(v * v for v in numbers) ** 0.5
        error = max(known) if len(known) == len(errors) and known else (0.0 if not used else None)
        together = sum(e * e for e in known) ** 0.5
        relative = together / length if error is not None and length else None
        one = len(softened.rows) == 1 and len(exact) == 1
        found.append(
            {
                "column": column,
                "exact": truth[0] if one else truth,
                "softened": soft[0] if one else soft,
                "sensitivity": [float(_sensitivity(job, m)) for m in used] or 0.0,
                "beta": None,
                "noise_scale": scales[0] if len(scales) == 1 else scales or 0.0,
                "error95" if job.level == Fraction(95, 100) else "error": error,
                "relative_error95" if job.level == Fraction(95, 100) else "relative_error": relative,
                "mechanism": "discrete laplace" if used else "none",
                "analysis": "stability" if used else "public",
                "seconds": seconds,
            }
        )
    return found


def _columns(scalar: n.Scalar) -> set[str]:
    return {x.name for x in n.walk(scalar) if isinstance(x, n.Column)}


def _sensitivity(job: Job, measure: Any) -> Fraction:
    for b in job.prepared.bounded:
        for certificate in b.certificates:
            if measure.column in certificate.bounds:
                return max(c.bounds[measure.column].value for c in b.certificates) * Fraction(measure.step)
    return Fraction(0)
