"""The stages in order, and nowhere else: text, plan, enforcement, proof, noise, budget, answer.

`Connection.sql` is the story; everything before `reserve` reads no protected row and costs nothing.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secant.accuracy.target_error import Wanted, wanted_of
from secant.accuracy.warnings import Caution
from secant.display.progress import waiting
from secant.engines.backend import Backend
from secant.engines.sources import data_version, open_source
from secant.engines.watch import Interrupt, interruptible
from secant.errors import BudgetError, Refused, UsageError, border
from secant.infer_facts import (
    Situation,
    assumed_facts,
    explained,
    find_facts,
    paid_by,
    relied_upon,
    with_found,
)
from secant.ledger.opening import (
    Account,
    Accounts,
    accounts_of,
    ledger_place,
    ledger_was_started,
    open_ledger,
)
from secant.ledger.store import Ledger
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.rewrite import normalize
from secant.plan.typing import fields_of
from secant.policy.check import fit_policy
from secant.policy.file import policy_from
from secant.policy.following import naming
from secant.policy.policy import Policy
from secant.processes import ProcessLock
from secant.questions import (
    Asked,
    Number,
    answer_of,
    asked_of,
    charges_of,
    in_force,
    named_protection,
    note_of,
    prepared_of,
)
from secant.release.answer import Answer
from secant.release.evidence import papers_of
from secant.release.inferred_facts import Found, completed
from secant.release.job import Job
from secant.release.report import Explanation, explanation
from secant.release.run import check_job, finish, from_engine, run
from secant.schema.catalog import Catalog
from secant.schema.types import Type
from secant.settling import OpenQuestion, Settling, SourceUnderPolicy, open_question
from secant.sql.bind import check_named, from_sql
from secant.sql.parameters import Parameters
from secant.sql.query_context import one_question
from secant.work import limited_work

# Streams, scripts, attackers, solvers and the verifier are imported in the methods that need them: a plain question
# does not, and would start a tenth later.
if TYPE_CHECKING:
    from secant.stats.budget import Allowance
    from secant.streams.releasing import Kept, Opened
    from secant.streams.series import Series
    from secant.verifier import Verdict
    from secant.workflows import Workflow

__all__ = ["Account", "Answer", "Connection", "Explanation", "connect"]


@border
def connect(
    source: str | Mapping[str, object] | None = None,
    *,
    policy: str | Path | Mapping[str, Any] | Policy,
    ledger: str | Path | None = None,
    create: bool | None = None,
) -> Connection:
    """Open a data source under a policy.

    Args:
        source: `duckdb:FILE`, `parquet:DIR`, `csv:DIR` or `postgresql://…`, by default what the policy names; or tables
            by name: pandas, Polars and Arrow frames, DuckDB relations, paths of CSV and Parquet files.
        policy: The policy file, a policy, or a dict of its sections.
        ledger: Where the budget is kept; by default beside the policy file. Frames without a policy file have one for
            this process only, and say so; `":memory:"` asks for that.
        create: Whether a missing ledger is started; by default it is if none ever was there, with a warning in
            the log. A ledger that is gone is an error in any case.
    """
    read = policy_from(policy)
    place = ledger_place(read, ledger, frames=isinstance(source, Mapping))
    beside = None if source or read.path is None else read.path.parent
    backend = open_source(source or read.source, beside=beside, limits=read.limits)
    try:
        version = data_version(source or read.source, beside=beside)
        fitted = fit_policy(read, backend.catalog())
        check_named(naming(fitted, backend.catalog()))
        return Connection(backend, fitted, place, create=create, data_version=version)
    except BaseException:
        backend.close()
        raise


class Connection:
    """An open data source with its policy and its ledger. Close it, or use it as a context manager."""

    def __init__(
        self,
        backend: Backend,
        policy: Policy,
        ledger: str | Path,
        *,
        create: bool | None = None,
        data_version: str = "",
    ) -> None:
        self.policy = policy
        self._data_version = data_version
        self._backend = backend
        self._catalog = naming(policy, backend.catalog())
        self._place = ledger
        self._create = create
        self._ledger: Ledger | None = None
        self._opening = ProcessLock()
        self._found: tuple[Found, ...] = ()

    @border
    def close(self) -> None:
        """Let go of the data and of the ledger."""
        self._backend.close()
        with self._opening:
            if self._ledger is not None:
                self._ledger.close()
                self._ledger = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    @border
    def catalog(self) -> Catalog:
        """Names and types of the tables, as they were when the source was opened, and views over them."""
        return self._catalog

    @property
    @border
    def ledger(self) -> Ledger:
        """The ledger, opened when it is first needed."""
        with self._opening:  # two threads must not open two
            if self._ledger is None:
                self._ledger = open_ledger(self.policy, self._place, create=self._create)
            return self._ledger

    @border
    def check_source(self) -> None:
        """Raise unless the engine that holds the data answers now. Reads no table."""
        with self._backend.session() as session:
            session.rows("SELECT 1")

    @property
    @border
    def has_ledger(self) -> bool:
        """Whether there is a ledger, or a trace of one; otherwise the first question starts it."""
        return ledger_was_started(self._place)

    @property
    @border
    def budget(self) -> Accounts:
        """What each protection has, has spent, and has left."""
        return accounts_of(self.ledger)

    @border
    def protection(self, name: str) -> Allowance:
        """Give a protection with its budget, for `secant.stats` and `secant.blackbox` to charge."""
        protection = named_protection(self.policy, name)
        others = tuple(p.name for p in self.policy.protections if p.name != name)
        from secant.stats.budget import Allowance  # statistics need numpy; questions do not

        return Allowance(protection, lambda: self.ledger, others, accept=self.policy.accept)

    # ── the story ────────────────────────────────────────────────────────────────────────────────

    @border
    def sql(
        self,
        text: str,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        max_error: Number | None = None,
        attacker: str | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        protection: str | None = None,
        analyst: str = "",
        warn: Callable[[Caution], object] | None = None,
        interrupt: Interrupt | None = None,
        data_version: str | None = None,
    ) -> Answer:
        """Answer a query privately and charge its price to every protection that it touches.

        Either `epsilon` is given, or `error`: then the least epsilon is found at which every noisy number has that
        error at most. `max_error` refuses to spend where an error would be larger. Both are amounts (`20`) or shares of
        one (`"5% of 2000"`). `attacker`, such as "visits.cost within 50 at most 30%", refuses to spend where more could
        be guessed after all answers so far; alone, it finds the largest epsilon that keeps to it. `warn` is called with
        each warning before anything is spent; the answer holds them, too. `parameters` are values for `?`, `$1` or
        `:name`, as public as the text. Another thread may stop `interrupt`; what was sent by then is paid for.
        `data_version` names the data in the record of the release, by default by the times of their files.
        """
        with one_question(text), waiting("asking"), interruptible(interrupt):
            asked = self._asked(epsilon, error, delta, level, protection, attacker)
            asked = asked if data_version is None else replace(asked, data=data_version)
            allowed = None if max_error is None else wanted_of(max_error, "max_error")
            asked = asked if allowed is None else replace(asked, allowed=True)
            try:
                answer = self._released(text, parameters, asked, allowed, analyst, warn)
                return with_found(answer, relied_upon(answer, self._found), Fraction(0), None)
            except Refused as refusal:  # nothing was spent
                if asked.epsilon is None or not (allowed is None and asked.attacker is None):
                    raise
                case = self._situation(refusal, text, parameters, asked)
            # what is refused pays for no fact
            _, job = self._foretold(case, text, parameters, asked, False)
            price = charges_of(job.noise)
            facts, paid, caution = find_facts(
                case, asked.epsilon, price, self.ledger, analyst, warn
            )
            self.policy, self._found = completed(self.policy, facts), (*self._found, *facts)
            answer = self._released(text, parameters, self._rest(asked, paid), None, analyst, warn)
            return with_found(answer, facts, paid, caution)

    def _released(
        self,
        text: str,
        parameters: Parameters | None,
        asked: Asked,
        allowed: Wanted | None,
        analyst: str,
        warn: Callable[[Caution], object] | None,
    ) -> Answer:
        with self._question(text, parameters) as question:
            plan, session, _ = question
            settling = self._settling(text, question, asked)
            job, keys = settling.settled()
            check_job(job, session)
            warnings = settling.foretold(job, keys, allowed)
            if warn is not None:
                for caution in warnings:
                    warn(caution)
            release_id = None
            if not job.prepared.bounded:
                result = finish(job, {}, from_engine(session), {})
            else:
                charges = charges_of(job.noise)
                declared = (self.policy, self.catalog)
                papers = papers_of(
                    (text, parameters), plan, job, declared, asked.in_force, asked.data
                )
                hold = partial(self.ledger.reserve, analyst=analyst, papers=papers)
                with hold(charges, note=note_of(job)) as permit:
                    result = run(job, keys, session, permit)
                    session.confirm()  # what has seen two states is paid for, and withheld
                # leaving the block has settled; if that failed, the answer is paid for all the same
                release_id = permit.release_id
        left = self._accounts(job)
        return answer_of(result, job, self.policy, asked.in_force, warnings, release_id, left)

    @border
    def explain(
        self,
        text: str,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        level: Number = 0.95,
        protection: str | None = None,
        attacker: str | None = None,
        ranges: bool = False,
    ) -> Explanation:
        """Show the derivation, the noise and the statements of a query. Spends nothing, reads no protected data.

        `error` finds the epsilon that `sql` would spend for it. `attacker`, such as "visits.cost within 50", adds what
        the answer would let somebody guess; `ranges` adds which ranges follow from declared facts, and from what.
        """
        with one_question(text), waiting("deriving"):
            assumed = epsilon is None and error is None
            given = 1 if assumed else epsilon
            asked = self._asked(given, error, delta, level, protection)
            try:
                result, job = self._explained(text, parameters, asked, assumed)
            except Refused as refusal:
                if asked.epsilon is None:
                    raise
                case = self._situation(refusal, text, parameters, asked)
                result, job = self._foretold(case, text, parameters, asked, assumed)
            if ranges:
                from secant.plan.facts.range_report import range_lines

                report = self.ranges(text, parameters=parameters)
                lines = "\n".join([result.text, *range_lines(report)])
                result = replace(result, text=lines, record={**result.record, "ranges": report})
            if attacker is None:
                return result
            from secant.guessed import charged_before, with_attacker

            charged = charged_before(self.ledger) if self.has_ledger else None
            return with_attacker(result, attacker, self.policy, self.catalog, job, charged)

    def _explained(
        self,
        text: str,
        parameters: Parameters | None,
        asked: Asked,
        assumed: bool,
        paid: Mapping[str, Fraction] | None = None,
    ) -> tuple[Explanation, Job]:
        with self._question(text, parameters) as question:
            settling = self._settling(text, question, asked)
            job, keys = settling.settled()
            # What is explained is answered: the same checks, on public data only.
            check_job(job, question.session)
            warnings = settling.foretold(job, keys, None)
        facts = Facts(self.policy, self.catalog)
        told = explanation(text, job, asked.in_force, warnings, facts, assumed=assumed, paid=paid)
        return told, job

    def _foretold(
        self, case: Situation, text: str, parameters: Parameters | None, asked: Asked, assumed: bool
    ) -> tuple[Explanation, Job]:
        """Explain a question with the facts that it lacks: those of the ledger, or of a usual size."""
        assert asked.epsilon is not None
        books = self.ledger if self.has_ledger else None
        facts, paid, words = assumed_facts(case, asked.epsilon, books)
        other = self._having(facts)
        rest, price = other._rest(asked, paid), paid_by(facts, paid)
        result, job = other._explained(text, parameters, rest, assumed, price)
        return explained(result, words), job

    def _situation(
        self, refusal: Refused, text: str, parameters: Parameters | None, asked: Asked
    ) -> Situation:
        return Situation(refusal, text, parameters, self._source, asked.in_force)

    def _having(self, facts: Sequence[Found], catalog: Catalog | None = None) -> Connection:
        other = copy.copy(self)
        other.policy, other._catalog = completed(self.policy, facts), catalog or self.catalog
        return other

    def _rest(self, asked: Asked, paid: Fraction) -> Asked:
        """Give what is left to ask once facts were found: the policy has them now."""
        names = [p.name for p in asked.in_force]
        in_force = tuple(p for p in self.policy.protections if p.name in names)
        assert asked.epsilon is not None
        return replace(asked, epsilon=asked.epsilon - paid, in_force=in_force)

    @border
    def run(
        self,
        script: str,
        *,
        epsilon: Number,
        delta: Number | None = None,
        level: Number = 0.95,
        protection: str | None = None,
        analyst: str = "",
        warn: Callable[[Caution], object] | None = None,
        explain: bool = False,
    ) -> Workflow:
        """Ask a script of `CREATE VIEW v AS`, `RELEASE t AS` and SELECTs; its outputs share epsilon equally.

        The answer holds what each output costs each table. All is explained before anything is spent; `explain` stops
        there, and spends nothing.
        """
        from secant.workflows import Asking, run_workflow

        with one_question(script), waiting("asking"):
            asked = self._asked(epsilon, None, delta, level, protection)
            books = None if explain else self.ledger

            def job(catalog: Catalog, text: str, part: Asked) -> Job:
                return self._having((), catalog)._explained(text, None, part, False)[1]

            def released(catalog: Catalog, text: str, part: Asked) -> Answer:
                other = self._having((), catalog)
                return other._released(text, None, part, None, analyst, warn)

            how = Asking(self.policy, asked, job, released, books)
            return run_workflow(script, self.catalog, how)

    @border
    def ranges(self, text: str, *, parameters: Parameters | None = None) -> list[dict[str, Any]]:
        """Give which ranges follow from declared facts for the values of a query, and from what."""
        from secant.plan.facts.range_report import range_report

        with one_question(text), limited_work():
            plan = from_sql(text, self.catalog, parameters=parameters)
            return range_report(normalize(plan), self.policy)

    @border
    def describe(
        self, text: str, *, parameters: Parameters | None = None
    ) -> tuple[tuple[str, Type], ...]:
        """Give names and types of the columns that an answer would have. Spends, reads and proves nothing."""
        with one_question(text), limited_work():
            plan = from_sql(text, self.catalog, parameters=parameters)
            return tuple((field.name, field.type) for field in fields_of(plan))

    @border
    def obligation(
        self, text: str, *, rows: int | None = None, protection: str | None = None
    ) -> str:
        """Write as SMT-LIB 2 what a solver must find impossible for the bound to hold (extra `smt`).

        For a query under a `rows` protection: that `rows` rows of its input can differ, by default one more than is
        proved. `unsat` from any solver confirms it. Reads no protected data, spends nothing.
        """
        with one_question(text):
            rowwise = [p for p in in_force(self.policy, protection) if p.kind == "rows"]
            if not rowwise:
                raise UsageError("USE-001", "only `rows` protections have such an obligation")
            with self._question(text) as (plan, _, facts), limited_work():
                prepared = prepared_of(text, plan, self.policy, tuple(rowwise), self.catalog, facts)
            declared = Facts(self.policy, self.catalog)
            from secant.sensitivity.smt.analysis import obligations

            with limited_work():
                return obligations([b.release for b in prepared.bounded], rowwise, declared, rows)

    @border
    def stream(
        self, name: str, *, until: object = None, analyst: str = "", kept: Kept | None = None
    ) -> Series:
        """Release all steps of a stream that are complete and not released yet; give the series so far.

        `until` ends at the step that it lies in. The first call pays for the whole stream; no number is drawn twice.
        `kept`, given to each call of one process, lets longer blocks be added up without reading their rows again.
        """
        opened = self._stream(name)
        from secant.streams.releasing import release_stream

        return release_stream(opened, lambda: self.ledger, until=until, analyst=analyst, kept=kept)

    @border
    def explain_stream(self, name: str) -> Explanation:
        """Say what a stream costs and how ways to release it compare. Spends nothing, reads no protected data."""
        from secant.streams.explaining import explain_stream

        return explain_stream(self._stream(name))

    def _stream(self, name: str) -> Opened:
        from secant.streams.releasing import opened_stream

        return opened_stream(self.policy, name, partial(in_force, self.policy), self._backend)

    @border
    def verify(self, release_id: str) -> Verdict:
        """Check a release by what it left in the ledger: records, each step of its derivation, noise and charge.

        What checks shares no rule with the analyses; what it has no rule for is not verified. Reads no data.
        """
        from secant.checking import check_release

        return check_release(self.ledger, self.policy, self.catalog, release_id)

    @border
    def inspect(
        self,
        text: str,
        *,
        epsilon: Number = 1,
        delta: Number | None = None,
        level: Number = 0.95,
        protection: str | None = None,
        components: bool = False,
    ) -> list[dict[str, Any]]:
        """For the data owner only: the true answer beside what a release would do. Releases nothing."""
        from secant.release.inspection import inspection, true_rows, unnoised
        from secant.release.local_components import local_components

        with one_question(text), waiting("inspecting"):
            started = time.perf_counter()
            asked = self._asked(epsilon, None, delta, level, protection)
            with self._question(text) as question:
                plan, session, _ = question
                job, keys = self._settling(text, question, asked).settled()
                compiled = time.perf_counter()
                check_job(job, session)
                checked = time.perf_counter()
                exact = true_rows(plan, session)
                answered = time.perf_counter()
                softened, seen = unnoised(job, keys, session)
                release = time.perf_counter() - answered + (checked - compiled)
                parts = local_components(job, asked.in_force, self.policy, session, components)
            plain = answered - checked
            seconds = {"compile": compiled - started, "plain": plain, "release": release}
            return inspection(job, exact, softened, seen, seconds, parts)

    @border
    def simulate(
        self, text: str, attacker: str, *, protection: str | None = None
    ) -> dict[str, Any]:
        """For the data owner only: what one who knows no row would guess, by Bayes' rule. It is no guarantee."""
        from secant.simulated import GRID, held_tables, simulated

        with one_question(text), self._question(text) as question:
            plan, session, _ = question
            jobs = {}
            for epsilon in GRID:
                asked = self._asked(epsilon, None, None, "0.95", protection)
                jobs[epsilon] = self._settling(text, question, asked).settled()[0]
            held = held_tables(plan, session)
        return simulated(jobs, held, attacker, self.policy, self.catalog)

    # ── stages ───────────────────────────────────────────────────────────────────────────────────

    @property
    def _source(self) -> SourceUnderPolicy:
        return SourceUnderPolicy(self._backend, self.policy, self.catalog)

    def _question(
        self, text: str, parameters: Parameters | None = None
    ) -> AbstractContextManager[OpenQuestion]:
        return open_question(text, self._source, parameters)

    def _asked(self, *numbers: Any) -> Asked:
        """Read the numbers of a question about this data."""
        return replace(asked_of(self.policy, *numbers), data=self._data_version)

    def _settling(self, text: str, question: OpenQuestion, asked: Asked) -> Settling:
        return Settling(text, question, asked, self.policy, self.catalog, self)

    def _accounts(self, job: Job) -> Accounts:
        """Say what is left. The answer is paid for: it leaves also if the books cannot be read now."""
        with suppress(BudgetError):
            return self.budget.of(job.noise.costs)
        return Accounts()
