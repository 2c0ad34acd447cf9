"""The statements of a question, its public keys, and what is bound and checked before anything is spent.

In: a decomposition with its noise, and a session. Out: the release plan. Public data only; the plans that were bounded
are what is printed (I1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter

from secant.accuracy.trace import signs_of, trace
from secant.engines.backend import Session, public_rows
from secant.engines.dialect import quote, stored_rows
from secant.engines.print.blocks import printed_columns
from secant.engines.print.print_sql import lower
from secant.errors import PolicyError, Refused
from secant.noise.calibrate import NoisePlan
from secant.noise.query_plan import reading_of
from secant.plan import nodes as n
from secant.plan.facts.domains import Chosen, Domain, Listed, Looked, Open
from secant.plan.facts.lineage import stored_columns
from secant.plan.facts.reads import scans
from secant.plan.typing import fields_of
from secant.policy.keys import Trust
from secant.policy.policy import Limits, Protection
from secant.release.finish import closing_plan, is_easy
from secant.release.release_plan import Keys, ReleasePlan, released_fields
from secant.release.running_blocks import by_blocks
from secant.release.staged_tables import placeholders, provided
from secant.runtime.work import limited_work
from secant.sensitivity.certificate import Certificate
from secant.sensitivity.split import Decomposition


def print_statements(
    prepared: Decomposition,
    noise: NoisePlan,
    level: Fraction,
    session: Session,
    limits: Limits,
    protections: Sequence[Protection],
) -> ReleasePlan:
    """Print the statements of a question, look up its public keys, and settle which noise is on blocks of them."""
    job = plan_release(prepared, noise, level, session, limits)
    job = replace(job, keys=look_up_keys(job, session))
    return by_blocks(job, job.keys, {p.name: p.kind for p in protections})


def plan_release(
    prepared: Decomposition, noise: NoisePlan, level: Fraction, session: Session, limits: Limits
) -> ReleasePlan:
    """Print the statements and let the engine bind them; nothing is read."""
    readings = {
        b.release.name: reading_of(b.release, noise.noise, noise.ranks) for b in prepared.bounded
    }
    relations = {name: x for r in readings.values() for name, x in r.relations().items()}
    statements = {name: lower(relation, session.dialect) for name, relation in relations.items()}
    noisy: dict[str, int] = {}
    for b in prepared.bounded:
        signs = signs_of(b.release.finish)
        noisy |= {m.column: signs.get(m.column, 0) for m in b.release.measures}
        noisy |= {r.column: 0 for r in b.release.ranked}
    after = "" if prepared.bounded else lower(prepared.post, session.dialect)
    lacking = {b.release.name for b in prepared.bounded if b.release.chooses_keys}
    traced = trace(prepared.post, noisy, frozenset(lacking))
    return ReleasePlan(
        prepared=prepared,
        noise=noise,
        statements=statements,
        readings=readings,
        traced=traced,
        level=level,
        rest=after,
        groups=limits.groups,
        reads=reads_of(relations.values()),
    )


def look_up_keys(job: ReleasePlan, session: Session) -> dict[str, Keys | None]:
    """Give for each release the keys that will be shown; None where the release itself will find them."""
    keys = {}
    for b in job.prepared.bounded:
        names = [k.name for k in b.release.exact.keys]
        keys[b.release.name] = listed_keys(names, b.release.domains, job.groups, session)
    return keys


def listed_keys(
    names: Sequence[str], domains: Sequence[Domain], most: int, session: Session
) -> Keys | None:
    """Give all combinations of keys, from lists and public tables; None where some are found only in the data."""
    parts: list[tuple[tuple[str, ...], list[tuple[object, ...]]]] = []
    count = 1
    for domain in domains:
        if isinstance(domain, (Chosen, Open)):
            return None
        if isinstance(domain, Listed):
            parts.append(((domain.key,), [(v,) for v in domain.values]))
        elif isinstance(domain, Looked):
            parts.append((domain.keys, session.rows(lower(domain.relation, session.dialect))))
        count *= len(parts[-1][1])
        if count > most:  # the product is known before it is written out
            raise Refused(
                "REF-101",
                f"the answer would have more than {most} groups",
                hint="group by fewer or coarser columns, filter the groups, or let the data owner raise `groups`",
            )
    columns = [name for part, _ in parts for name in part]
    places = [columns.index(name) for name in names]
    values: Iterable[tuple[object, ...]]
    if all(
        len(part) == 1 for part, _ in parts
    ):  # there may be many: nothing is done to each of them
        values = itertools.product(*([value for (value,) in rows] for _, rows in parts))
    else:
        values = [()]
        for _, rows in parts:
            values = [(*start, *row) for start in values for row in rows]
    if places == list(range(len(columns))):
        return list(values)
    if len(places) > 1:
        return list(map(itemgetter(*places), values))
    return [tuple([row[index] for index in places]) for row in values]


def check_statements(job: ReleasePlan, session: Session) -> None:
    """Let the engine bind every statement, and hold claims about public tables against public data.

    What follows the releases is bound, too, with NULLs for what is not drawn yet: once a release is paid for, nothing
    may be left that the engine has not accepted. The claims are checked for every release on the data that answer it:
    a table can change between two, unless the engine reads files that it compares with what they were.
    """
    with limited_work():
        _check_statements(job, session)


def _check_statements(job: ReleasePlan, session: Session) -> None:
    not_yet = placeholders({b.release.name: released_fields(b) for b in job.prepared.bounded})
    for statement in job.statements.values():
        session.check(provided(statement, not_yet, session.dialect))
    for relation in job.traced.closing():
        if not is_easy(relation):
            session.check(lower(closing_plan(relation, not_yet), session.dialect))
    check_claims([c for b in job.prepared.bounded for c in b.certificates], session)
    for relation in (r for b in job.prepared.bounded for r in b.release.scalars):
        _check_scalar(session, relation)


def check_claims(certificates: Sequence[Certificate], session: Session) -> None:
    """Hold claims about keys of public tables against public data."""
    claims = dict.fromkeys(claim for c in certificates for claim in c.claims)
    for claim in (c for c in claims if c.trust is Trust.CHECKED):
        _check_key(session, claim.table, claim.columns)


def _check_scalar(session: Session, relation: n.Relation) -> None:
    """Refuse a text that would fail in every database: its scalar subquery over public rows has several."""
    counted = n.Aggregate(relation, (), (n.Aggregation("rows", "count", None),))
    ((rows,),) = public_rows(session, lower(counted, session.dialect))
    if isinstance(rows, int) and rows > 1:
        raise Refused(
            "REF-101",
            "a scalar subquery over public tables has several rows",
            hint="aggregate inside the subquery, for example with max()",
        )


def _check_key(session: Session, table: str, columns: tuple[str, ...]) -> None:
    catalog = session.catalog()
    stored = catalog.spelled(table, columns)[1]
    names = ", ".join(quote(c) for c in stored)
    rows = stored_rows(session.dialect, catalog.tables[table.lower()], stored)
    twice = f"SELECT 1 FROM {rows} AS t GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
    if public_rows(session, twice):
        raise PolicyError(
            "POL-004",
            f"the declared key ({', '.join(columns)}) of the public table {table} is not unique",
            hint="correct the key in the policy, or the table",
        )


# ── which columns the statements read ───────────────────────────────────────────────────────────────


def reads_of(relations: Iterable[n.Relation]) -> Mapping[str, frozenset[str]]:
    """Give the columns that statements name, table by table; a table whose rows are only counted has none."""
    columns_by_table: dict[str, set[str]] = {}
    for relation in relations:
        named = {f.name for f in fields_of(relation)} | printed_columns(relation)
        for scan in scans(relation):
            columns = {base for name, base in stored_columns(scan).items() if name in named}
            columns_by_table.setdefault(scan.table.lower(), set()).update(columns)
    return {table: frozenset(columns) for table, columns in columns_by_table.items()}
