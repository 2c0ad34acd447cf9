"""A question from its text to everything that is settled before budget is touched.

In: a text, a policy, a source, the numbers that are asked with. Out: the plan in a session, its job at the epsilon that
is given or found, and what should be known before anything is spent. Reads public data only; nothing is spent here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, Protocol

from secant.accuracy.forecast import foresee
from secant.accuracy.target_error import Wanted, held, least_epsilon, refuse_above
from secant.accuracy.warnings import Caution, cautions, trusting
from secant.collecting import seldom_collecting
from secant.engines.backend import Backend, Session
from secant.errors import Refused
from secant.noise.shares import calibrate
from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import Policy
from secant.questions import Asked, prepared_of
from secant.records import frozen
from secant.release.job import Job, Keys
from secant.release.public_facts import public_facts
from secant.release.running_blocks import planned
from secant.schema.catalog import Catalog
from secant.sensitivity.portfolio import PublicFacts
from secant.sql.bind import from_sql
from secant.sql.parameters import Parameters
from secant.work import limited_work

if TYPE_CHECKING:
    from secant.attack import Attacker
    from secant.guessed import GuessLimit
    from secant.ledger.store import Ledger


@frozen
class SourceUnderPolicy:
    """Where questions are asked: tables, what the owner says of them, and what names mean."""

    backend: Backend
    policy: Policy
    catalog: Catalog


class OpenQuestion(NamedTuple):
    """A plan, the session that will answer it, and public facts that are looked up there, each at most once."""

    plan: n.Relation
    session: Session
    facts: PublicFacts


@contextmanager
def open_question(
    text: str, source: SourceUnderPolicy, parameters: Parameters | None = None
) -> Iterator[OpenQuestion]:
    """Give the plan of a query, and a session in which all tables stay as they are that it may read."""
    with seldom_collecting():
        with limited_work():
            plan = normalize(from_sql(text, source.catalog, parameters=parameters))
        # Keys, owners and public rows are looked up in tables that the query does not name, but the policy does.
        named = {*(s.table for s in scans(plan)), *source.policy.tables, *source.policy.public}
        with source.backend.session(named) as session:
            yield OpenQuestion(plan, session, public_facts(source.policy, session))


class Books(Protocol):
    """Who has a ledger, and opens it when it is first needed."""

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        ...


@frozen
class Settling:
    """An open question, and what it is asked with; jobs are worked out once for each epsilon."""

    text: str
    question: OpenQuestion
    asked: Asked
    policy: Policy
    catalog: Catalog
    books: Books
    """Read where an attacker is spoken of, who knows all answers so far."""
    _jobs: dict[Fraction, tuple[Job, dict[str, Keys | None]]] = field(default_factory=dict)

    def settled(self) -> tuple[Job, dict[str, Keys | None]]:
        """Fix the noise, at the epsilon that is given, or at the one that an error or an attacker leads to."""
        asked = self.asked
        if asked.epsilon is not None:
            return self._at(asked.epsilon)
        if asked.error is not None:
            return self._at(least_epsilon(self._reaches))
        assert asked.attacker is not None
        from secant.guessed import within_allowance

        return self._at(within_allowance(self._guess_limit(asked.attacker), self._job))

    def _guess_limit(self, attacker: Attacker) -> GuessLimit:
        from secant.guessed import GuessLimit, charged_before  # attackers are rarely spoken of

        charged = charged_before(self.books.ledger)
        return GuessLimit(attacker, self.policy, self.asked.in_force, self.catalog, charged)

    def _at(self, epsilon: Fraction) -> tuple[Job, dict[str, Keys | None]]:
        if epsilon not in self._jobs:
            plan, session, facts = self.question
            in_force, level = self.asked.foretold, self.asked.level
            with limited_work():
                prepared = prepared_of(
                    self.text, plan, self.policy, in_force, self.catalog, facts.at(epsilon)
                )
                noise = calibrate(prepared.bounded, in_force, epsilon, self.asked.deltas)
                self._jobs[epsilon] = planned(
                    prepared, noise, level, session, self.policy.limits, in_force
                )
        return self._jobs[epsilon]

    def _job(self, epsilon: Fraction) -> Job:
        return self._at(epsilon)[0]

    def _reaches(self, epsilon: Fraction) -> bool:
        """Whether the error that is wanted is reached."""
        wanted, (_, session, facts) = self.asked.error, self.question
        assert wanted is not None
        try:
            job, keys = self._at(epsilon)
        except Refused as refusal:
            if refusal.code != "REF-104":  # too small for a smooth bound: a larger one may do
                raise
            return False
        with limited_work():
            foreseen = foresee(job, keys, session, self.policy, facts)
        return held(foreseen, wanted.most(job, foreseen, self.policy, facts))

    def foretold(
        self, job: Job, keys: dict[str, Keys | None], allowed: Wanted | None
    ) -> tuple[Caution, ...]:
        """Give what should be known before anything is spent; refuse errors that are not allowed."""
        asked, policy, (plan, session, facts) = self.asked, self.policy, self.question
        thorough = allowed is not None or asked.error is not None
        with limited_work():
            foreseen = foresee(job, keys, session, policy, facts, thorough=thorough)
        if allowed is not None:
            refuse_above(foreseen, allowed.most(job, foreseen, policy, facts))
        if asked.attacker is not None:
            from secant.guessed import refuse_beyond

            refuse_beyond(self._guess_limit(asked.attacker), job)
        with limited_work():
            warnings = cautions(job, plan, policy, asked.in_force, foreseen, keys, facts)
        return (*warnings, *trusting(foreseen)) if thorough else warnings
