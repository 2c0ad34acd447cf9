"""A query taken as far as a release, many times over, on data that nobody needs to protect.

In: an open connection to generated data, a text, epsilon and delta. Out: the plain answer, the rows
of each release, and which columns carry noise. The noise is drawn as for an analyst; no ledger is
opened and no budget is reserved, so this has no place outside benchmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from secant.accuracy.noise_lineage import noise_lineage
from secant.engine import Connection
from secant.engines.backend import Backend, PublicRows, Session
from secant.engines.print.print_sql import lower
from secant.noise.calibrate import calibrate
from secant.plan.rewrites.rewrite import normalize
from secant.release.draw import NoisyTables, draw
from secant.release.finish import Result, finish, from_engine
from secant.release.print import look_up_keys, plan_release
from secant.release.release_plan import ReleasePlan
from secant.schema.catalog import Catalog
from secant.sensitivity.split import split
from secant.sql.bind import bind, from_sql
from secant.stages.open import open_snapshot

LEVEL = Fraction(95, 100)
Rows = list[tuple[object, ...]]


class NoBudget:
    """A permit for rehearsals: nothing leaves this process."""

    def mark_sent(self) -> None:
        """Do nothing."""


class Apart:
    """An engine that runs every statement in a session of its own: good enough for data that nobody changes."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self.dialect = backend, backend.dialect

    @property
    def known(self) -> PublicRows:
        """Give nothing: the next statement is another session's."""
        return {}

    def catalog(self) -> Catalog:
        """Give the engine's catalog."""
        return self._backend.catalog()

    def check(self, statement: str) -> None:
        """Let the engine judge the statement."""
        with self._backend.session() as session:
            session.check(statement)

    def rows(self, statement: str) -> Rows:
        """Run a statement."""
        with self._backend.session() as session:
            return session.rows(statement)

    def keep(self, statement: str) -> str | None:
        """Keep nothing beyond a statement."""
        return None

    def confirm(self) -> None:
        """Do nothing: each session has looked for itself."""


class Remembering:
    """An engine that runs each statement once: between two releases only the noise differs.

    The text decides, so a statement that is written anew for a drawn value is run anew.
    """

    def __init__(self, engine: Session) -> None:
        self._engine, self.dialect = engine, engine.dialect
        self._rows: dict[str, Rows] = {}

    def catalog(self) -> Catalog:
        """Give the engine's catalog."""
        return self._engine.catalog()

    @property
    def known(self) -> PublicRows:
        """Give what the engine knows of public tables."""
        return self._engine.known

    def check(self, statement: str) -> None:
        """Let the engine judge the statement."""
        self._engine.check(statement)

    def rows(self, statement: str) -> Rows:
        """Run a statement, or give what it gave before."""
        if statement not in self._rows:
            self._rows[statement] = self._engine.rows(statement)
        return self._rows[statement]

    def keep(self, statement: str) -> str | None:
        """Keep nothing: what is kept would be another table each time."""
        return None

    def confirm(self) -> None:
        """Let the engine say whether its data may have changed."""
        self._engine.confirm()


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A query that is ready to be released as often as one likes."""

    job: ReleasePlan
    noisy: tuple[bool, ...]
    """For each output column, whether noise decides its values."""
    analyses: tuple[str, ...]
    """Analyses that the releases rest on; none if nothing protected is read."""

    def release(self, engine: Session) -> Rows:
        """Give the rows of one more release."""
        return self.shown(engine).rows

    def shown(self, engine: Session) -> Result:
        """Give one more release with the errors that stand beside its numbers."""
        return released(self.job, engine)


def released(job: ReleasePlan, engine: Session) -> Result:
    """Draw a release and finish it, as `Connection.sql` does once budget is reserved."""
    drawn = NoisyTables({}, {})
    if job.prepared.bounded:
        drawn = draw(job, look_up_keys(job, engine), engine, NoBudget())
    return finish(job, drawn, from_engine(engine), noise_lineage(job))


def compiled(db: Connection, text: str, epsilon: Fraction, delta: Fraction) -> Rehearsal:
    """Take a query through all stages that come before the budget; refusals pass through."""
    protections = db.policy.protections
    plan = bind(text, db.catalog)
    with open_snapshot(plan, db._source) as snapshot:
        session = snapshot.session
        facts = snapshot.facts
        prepared = split(text, plan, db.policy, protections, db.catalog, facts.at(epsilon))
        deltas = {p.name: delta for p in protections}
        noise = calibrate(prepared.bounded, protections, epsilon, deltas)
        job = plan_release(prepared, noise, LEVEL, session, db.policy.limits)
    relied = noise_lineage(job)
    analyses = {r for b in prepared.bounded for c in b.certificates for r in c.analysis.split(", ")}
    return Rehearsal(
        job,
        tuple(bool(relied.columns[name]) for name in job.traced.outputs),
        tuple(sorted(analyses)),
    )


def engine_of(db: Connection) -> Session:
    """Give the engine of a connection."""
    return Apart(db._backend)


def plain_statement(db: Connection, text: str) -> str:
    """Print the user's own query, without limits, clamps and noise."""
    return lower(normalize(from_sql(text, db.catalog)), db._backend.dialect)
