"""The stages in order, and nowhere else: text, plan, enforcement, proof, noise, budget, answer.

`Connection.sql` is the story; everything before `reserve` reads no protected row and costs nothing.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secant.accuracy.forecast import Forecast, forecast
from secant.accuracy.warnings import Caution, trusting, warnings_of
from secant.display.progress import waiting
from secant.engines.backend import Backend
from secant.engines.sources import data_version, open_source
from secant.engines.watch import Interrupt, interruptible
from secant.errors import BudgetError, Refused, UsageError, public_api
from secant.ledger.amounts import as_written
from secant.ledger.opening import (
    Account,
    Accounts,
    accounts_of,
    ledger_place,
    ledger_was_started,
    open_ledger,
)
from secant.ledger.store import Ledger
from secant.noise.calibrate import calibrate
from secant.numeric.parameters import epsilon_of
from secant.plan.facts.facts import Facts
from secant.plan.nodes import Relation
from secant.plan.typing import fields_of
from secant.policy.check import fit_policy
from secant.policy.file import policy_from
from secant.policy.following import naming
from secant.policy.policy import Policy
from secant.release.answer import Answer
from secant.release.draw import NoisyTables, draw
from secant.release.finish import finish, from_engine
from secant.release.inferred_facts import Found, completed, without
from secant.release.print import check_statements, print_statements
from secant.release.release_plan import ReleasePlan
from secant.release.report import Explanation, answer_of, explanation
from secant.runtime.processes import ProcessLock
from secant.runtime.work import limited_work
from secant.schema.catalog import Catalog
from secant.schema.types import Type
from secant.sensitivity.split import split
from secant.sql.bind import bind, check_named, from_sql
from secant.sql.parameters import Parameters
from secant.sql.query_context import query_context
from secant.stages.ask import Number, Question, ask, named_protection, protections_in_force
from secant.stages.limits import find_epsilon, refuse_not_allowed
from secant.stages.open import Snapshot, Source, open_snapshot
from secant.stages.reserve import charges_of, reserve
from secant.workflows.infer_facts import (
    Situation,
    assumed_facts,
    discard,
    explained,
    find_again,
    find_facts,
    found_so_far,
    named,
    paid_by,
    relied_upon,
    with_inferred,
)

# Streams, scripts, attackers, solvers and the verifier are imported in the methods that need them: a plain question
# does not, and would start a tenth later.
if TYPE_CHECKING:
    from secant.stats.budget import Allowance
    from secant.streams.releasing import Buffer, Opened
    from secant.streams.series import Series
    from secant.verifier import Verdict
    from secant.workflows.script import Workflow

__all__ = ["Account", "Answer", "Connection", "Explanation", "connect"]


@public_api
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
    ledger_path = ledger_place(read, ledger, frames=isinstance(source, Mapping))
    beside = None if source or read.path is None else read.path.parent
    backend = open_source(source or read.source, beside=beside, limits=read.limits)
    try:
        version = data_version(source or read.source, beside=beside)
        fitted = fit_policy(read, backend.catalog())
        check_named(naming(fitted, backend.catalog()))
        return Connection(backend, fitted, ledger_path, create=create, data_version=version)
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

    @public_api
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
    @public_api
    def catalog(self) -> Catalog:
        """Names and types of the tables, as they were when the source was opened, and views over them."""
        return self._catalog

    @property
    @public_api
    def ledger(self) -> Ledger:
        """The ledger, opened when it is first needed."""
        with self._opening:  # two threads must not open two
            if self._ledger is None:
                self._ledger = open_ledger(self.policy, self._place, create=self._create)
            return self._ledger

    @public_api
    def check_source(self) -> None:
        """Raise unless the engine that holds the data answers now. Reads no table."""
        with self._backend.session() as session:
            session.rows("SELECT 1")

    @property
    @public_api
    def has_ledger(self) -> bool:
        """Whether there is a ledger, or a trace of one; otherwise the first question starts it."""
        return ledger_was_started(self._place)

    @property
    @public_api
    def budget(self) -> Accounts:
        """What each protection has, has spent, and has left."""
        return accounts_of(self.ledger)

    @public_api
    def protection(self, name: str) -> Allowance:
        """Give a protection with its budget, for `secant.stats` and `secant.blackbox` to charge."""
        protection = named_protection(self.policy, name)
        others = tuple(p.name for p in self.policy.protections if p.name != name)
        from secant.stats.budget import Allowance  # statistics need numpy; questions do not

        return Allowance(protection, lambda: self.ledger, others, accept=self.policy.accept)

    # ── the story ────────────────────────────────────────────────────────────────────────────────

    @public_api
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
        certain: bool = False,
    ) -> Answer:
        """Answer a query privately and charge its price to every protection that it touches.

        Either `epsilon` is given, or `error`: then the least epsilon is found at which every noisy number has that
        error at most. `max_error` refuses to spend where an error would be larger. Both are amounts (`20`) or shares of
        one (`"5% of 2000"`). `attacker`, such as "visits.cost within 50 at most 30%", refuses to spend where more could
        be guessed after all answers so far; alone, it finds the largest epsilon that keeps to it. `warn` is called with
        each warning before anything is spent; the answer holds them, too. `parameters` are values for `?`, `$1` or
        `:name`, as public as the text. Another thread may stop `interrupt`; what was sent by then is paid for.
        `data_version` names the data in the record of the release, by default by the times of their files. `certain`
        asks for ends that hold for every database, and spends for them: limits are the declared ones.
        """
        version = self._data_version if data_version is None else data_version
        with query_context(text), waiting("asking"), interruptible(interrupt):
            question = ask(
                text, self.policy, parameters=parameters, epsilon=epsilon, error=error,
                max_error=max_error, attacker=attacker, delta=delta, level=level,
                protection=protection, analyst=analyst, data=version, certain=certain,
            )  # fmt: skip
            try:
                answer = self._answer(question, warn)
                return with_inferred(answer, relied_upon(answer, self._found), Fraction(0), None)
            except Refused as refusal:  # nothing was spent
                if question.epsilon is None or question.most or question.attacker:
                    raise
                case = Situation(refusal, question, self._source)
            # what is refused pays for no fact
            price = charges_of(self._explain_assuming(case, assumed=False)[1].noise)
            facts, paid, caution = find_facts(case, question.epsilon, price, self.ledger, warn)
            self.policy, self._found = completed(self.policy, facts), (*self._found, *facts)
            answer = self._answer(self._rest(question, paid), warn)
            return with_inferred(answer, facts, paid, caution)

    def _answer(
        self, question: Question, warn: Callable[[Caution], object] | None = None
    ) -> Answer:
        """Go through the stages, from bind to finish."""
        plan = bind_question(question, self.catalog)
        with open_snapshot(plan, self._source) as snapshot:
            release = self._planned(question, plan, snapshot)
            check_statements(release, snapshot.session)
            known, warnings = self._forecast(question, plan, release, snapshot)
            if warn is not None:
                for caution in warnings:
                    warn(caution)
            rows_of = from_engine(snapshot.session)
            release_id = None
            if not release.prepared.bounded:
                result = finish(release, NOTHING_DRAWN, rows_of, known.lineage)
            else:
                with reserve(question, plan, release, snapshot, self.ledger) as reservation:
                    noisy = draw(release, release.keys, snapshot.session, reservation)
                    result = finish(release, noisy, rows_of, known.lineage)
                    snapshot.session.confirm()  # what has seen two states is paid for, and withheld
                # leaving the block has settled; if that failed, the answer is paid for all the same
                release_id = reservation.release_id
        left = self._accounts(release)
        held = (self.policy, question.protections)
        return answer_of(result, release, *held, warnings, release_id, left)

    def _planned(self, question: Question, plan: Relation, snapshot: Snapshot) -> ReleasePlan:
        """Go from split to print, at the epsilon that is given, or at the one that is found."""

        @cache
        def at(epsilon: Fraction) -> ReleasePlan:
            held, facts = question.planned, snapshot.facts.at(epsilon)
            with limited_work():
                # Each aggregate is enforced and bounded as it is split off: where that fails, one further in is tried.
                parts = split(question.text, plan, self.policy, held, self.catalog, facts)
                noise = calibrate(parts.bounded, held, epsilon, question.deltas)
                session, limits = snapshot.session, self.policy.limits
                printed = print_statements(parts, noise, question.level, session, limits, held)
                return replace(printed, certain=question.certain)

        return at(find_epsilon(question, at, snapshot, lambda: self.ledger))

    def _forecast(
        self, question: Question, plan: Relation, release: ReleasePlan, snapshot: Snapshot
    ) -> tuple[Forecast, tuple[Caution, ...]]:
        """Give what should be known before anything is spent; refuse what the question does not allow."""
        session, policy, facts = snapshot.session, self.policy, snapshot.facts
        with limited_work():
            known = forecast(release, session, policy, facts, thorough=question.thorough)
        refuse_not_allowed(question, release, known, snapshot, lambda: self.ledger)
        with limited_work():
            held, keys = question.protections, release.keys
            warnings = warnings_of(release, plan, policy, held, known, keys, facts)
        return known, (*warnings, *trusting(known)) if question.thorough else warnings

    @public_api
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
        certain: bool = False,
    ) -> Explanation:
        """Show the derivation, the noise and the statements of a query. Spends nothing, reads no protected data.

        `error` finds the epsilon that `sql` would spend for it. `attacker`, such as "visits.cost within 50", adds what
        the answer would let somebody guess; `ranges` adds which ranges follow from declared facts, and from what.
        """
        with query_context(text), waiting("deriving"):
            assumed = epsilon is None and error is None
            question = ask(
                text, self.policy, parameters=parameters, epsilon=1 if assumed else epsilon,
                error=error, delta=delta, level=level, protection=protection, certain=certain,
            )  # fmt: skip
            try:
                result, release = self._explain(question, assumed)
            except Refused as refusal:
                if question.epsilon is None:
                    raise
                case = Situation(refusal, question, self._source)
                result, release = self._explain_assuming(case, assumed)
            if ranges:
                from secant.plan.facts.range_report import range_lines

                report = self.ranges(text, parameters=parameters)
                lines = "\n".join([result.text, *range_lines(report)])
                result = replace(result, text=lines, record={**result.record, "ranges": report})
            if attacker is None:
                return result
            from secant.stages.guess_limit import charged_before, with_attacker

            charged = charged_before(self.ledger) if self.has_ledger else None
            return with_attacker(result, attacker, self.policy, self.catalog, release, charged)

    def _explain(
        self, question: Question, assumed: bool, paid: Mapping[str, Fraction] | None = None
    ) -> tuple[Explanation, ReleasePlan]:
        """Go through the stages, from bind to forecast: what is explained is answered."""
        plan = bind_question(question, self.catalog)
        with open_snapshot(plan, self._source) as snapshot:
            release = self._planned(question, plan, snapshot)
            check_statements(release, snapshot.session)
            known, warnings = self._forecast(question, plan, release, snapshot)
        facts = Facts(self.policy, self.catalog)
        asked = (question.text, release, question.protections)
        result = explanation(*asked, warnings, facts, assumed=assumed, paid=paid)
        moved = known.lineage.columns if release.prepared.bounded else {}
        noisy = tuple(c for c in release.traced.outputs if moved.get(c))
        return replace(result, noisy=noisy), release

    def _explain_assuming(self, case: Situation, assumed: bool) -> tuple[Explanation, ReleasePlan]:
        """Explain a question with the facts that it lacks: those of the ledger, or of a usual size."""
        assert case.question.epsilon is not None
        ledger = self.ledger if self.has_ledger else None
        facts, paid, words = assumed_facts(case, case.question.epsilon, ledger)
        other = self._having(facts)
        rest, price = other._rest(case.question, paid), paid_by(facts, paid)
        result, release = other._explain(rest, assumed, price)
        return explained(result, words), release

    def _having(self, facts: Sequence[Found], catalog: Catalog | None = None) -> Connection:
        other = copy.copy(self)
        other.policy, other._catalog = completed(self.policy, facts), catalog or self.catalog
        return other

    def _rest(self, question: Question, paid: Fraction) -> Question:
        """Give what is left to ask once facts were found: the policy has them now."""
        names = [p.name for p in question.protections]
        held = tuple(p for p in self.policy.protections if p.name in names)
        assert question.epsilon is not None
        return replace(question, epsilon=question.epsilon - paid, protections=held)

    @public_api
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
        from secant.workflows.script import Asking, run_workflow

        with query_context(script), waiting("asking"):
            question = ask(
                script, self.policy, epsilon=epsilon, delta=delta, level=level,
                protection=protection, analyst=analyst, data=self._data_version,
            )  # fmt: skip
            ledger = None if explain else self.ledger

            def planned(catalog: Catalog, part: Question) -> ReleasePlan:
                return self._having((), catalog)._explain(part, False)[1]

            def answered(catalog: Catalog, part: Question) -> Answer:
                return self._having((), catalog)._answer(part, warn)

            how = Asking(self.policy, question, planned, answered, ledger)
            return run_workflow(script, self.catalog, how)

    @public_api
    def ranges(self, text: str, *, parameters: Parameters | None = None) -> list[dict[str, Any]]:
        """Give which ranges follow from declared facts for the values of a query, and from what."""
        from secant.plan.facts.range_report import range_report

        with query_context(text), limited_work():
            return range_report(bind(text, self.catalog, parameters), self.policy)

    @public_api
    def describe(
        self, text: str, *, parameters: Parameters | None = None
    ) -> tuple[tuple[str, Type], ...]:
        """Give names and types of the columns that an answer would have. Spends, reads and proves nothing."""
        with query_context(text), limited_work():
            plan = from_sql(text, self.catalog, parameters=parameters)
            return tuple((field.name, field.type) for field in fields_of(plan))

    @public_api
    def obligation(
        self, text: str, *, rows: int | None = None, protection: str | None = None
    ) -> str:
        """Write as SMT-LIB 2 what a solver must find impossible for the bound to hold (extra `smt`).

        For a query under a `rows` protection: that `rows` rows of its input can differ, by default one more than is
        proved. `unsat` from any solver confirms it. Reads no protected data, spends nothing.
        """
        with query_context(text):
            rowwise = [p for p in protections_in_force(self.policy, protection) if p.kind == "rows"]
            if not rowwise:
                raise UsageError("USE-001", "only `rows` protections have such an obligation")
            plan = bind(text, self.catalog)
            with open_snapshot(plan, self._source) as snapshot, limited_work():
                facts = snapshot.facts
                parts = split(text, plan, self.policy, tuple(rowwise), self.catalog, facts)
            declared = Facts(self.policy, self.catalog)
            from secant.sensitivity.smt.analysis import obligations

            with limited_work():
                return obligations([b.release for b in parts.bounded], rowwise, declared, rows)

    @public_api
    def stream(
        self, name: str, *, until: object = None, analyst: str = "", kept: Buffer | None = None
    ) -> Series:
        """Release all steps of a stream that are complete and not released yet; give the series so far.

        `until` ends at the step that it lies in. The first call pays for the whole stream; no number is drawn twice.
        `kept`, given to each call of one process, lets longer blocks be added up without reading their rows again.
        """
        opened = self._stream(name)
        from secant.streams.releasing import release_stream

        return release_stream(opened, lambda: self.ledger, until=until, analyst=analyst, kept=kept)

    @public_api
    def explain_stream(self, name: str) -> Explanation:
        """Say what a stream costs and how ways to release it compare. Spends nothing, reads no protected data."""
        from secant.streams.explaining import explain_stream

        return explain_stream(self._stream(name))

    def _stream(self, name: str) -> Opened:
        from secant.streams.releasing import opened_stream

        return opened_stream(
            self.policy, name, partial(protections_in_force, self.policy), self._backend
        )

    @public_api
    def facts(self) -> list[dict[str, Any]]:
        """List ranges and limits that were found privately: what, when, for which epsilon, and how many lie outside."""
        return found_so_far(self.ledger)

    @public_api
    def discard_fact(self, name: str) -> None:
        """Forget what was found for `visits.cost`, or for the rows of `visits`: who needs it next pays for it again."""
        fact = discard(name, self.ledger)
        self._found = tuple(f for f in self._found if f.lacking != fact)
        self.policy = without(self.policy, fact)

    @public_api
    def find_fact(self, name: str, *, epsilon: Number) -> dict[str, Any]:
        """Find a range or a limit, again if there is one, at a price of its own."""
        asked = epsilon_of(as_written(epsilon, what="epsilon", code="USE-002"))
        plain = without(self.policy, named(name, self._source))
        found = find_again(name, asked, replace(self._source, policy=plain), self.ledger)
        kept = (f for f in self._found if f.lacking != found.lacking)
        self.policy, self._found = completed(plain, (found,)), (*kept, found)
        return {**found.to_dict(), "told": str(found)}

    @public_api
    def verify(self, release_id: str) -> Verdict:
        """Check a release by what it left in the ledger: records, each step of its derivation, noise and charge.

        What checks shares no rule with the analyses; what it has no rule for is not verified. Reads no data.
        """
        from secant.workflows.verify import check_release

        return check_release(self.ledger, self.policy, self.catalog, release_id)

    @public_api
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

        with query_context(text), waiting("inspecting"):
            started = time.perf_counter()
            question = ask(
                text, self.policy, epsilon=epsilon, delta=delta, level=level, protection=protection
            )
            plan = bind_question(question, self.catalog)
            with open_snapshot(plan, self._source) as snapshot:
                session = snapshot.session
                release = self._planned(question, plan, snapshot)
                compiled = time.perf_counter()
                check_statements(release, session)
                checked = time.perf_counter()
                exact = true_rows(plan, session)
                answered = time.perf_counter()
                softened, seen = unnoised(release, release.keys, session)
                spent = time.perf_counter() - answered + (checked - compiled)
                held = question.protections
                parts = local_components(release, held, self.policy, session, components)
            plain = answered - checked
            seconds = {"compile": compiled - started, "plain": plain, "release": spent}
            return inspection(release, exact, softened, seen, seconds, parts)

    @public_api
    def simulate(
        self, text: str, attacker: str, *, protection: str | None = None
    ) -> dict[str, Any]:
        """For the data owner only: what one who knows no row would guess, by Bayes' rule. It is no guarantee."""
        from secant.workflows.simulate import GRID, simulated, stored_tables

        with query_context(text):
            plan = bind(text, self.catalog)
            with open_snapshot(plan, self._source) as snapshot:
                jobs = {}
                for epsilon in GRID:
                    question = ask(text, self.policy, epsilon=epsilon, protection=protection)
                    jobs[epsilon] = self._planned(question, plan, snapshot)
                tables = stored_tables(plan, snapshot.session)
        return simulated(jobs, tables, attacker, self.policy, self.catalog)

    @property
    def _source(self) -> Source:
        return Source(self._backend, self.policy, self.catalog)

    def _accounts(self, release: ReleasePlan) -> Accounts:
        """Say what is left. The answer is paid for: it leaves also if the ledger cannot be read now."""
        with suppress(BudgetError):
            return self.budget.of(release.noise.costs)
        return Accounts()


NOTHING_DRAWN = NoisyTables({}, {})


def bind_question(question: Question, catalog: Catalog) -> Relation:
    """Give the plan of a question, in normal form."""
    with limited_work():
        return bind(question.text, catalog, question.parameters)
