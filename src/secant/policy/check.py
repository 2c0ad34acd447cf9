"""Does the policy fit the database? What is wrong, what is missing, and what nobody protects.

In: a policy and the catalog. Out: problems in the order of the file, and a policy whose values have
the types of their columns. Only names and types are looked at, never a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from secant.errors import PolicyError
from secant.policy.coverage import (
    coverage,
    is_protected,
    moving_columns,
    open_tables,
    protected_tables,
    reaches_unit,
    tables_of,
)
from secant.policy.fit import (
    element_tables,
    elements_of,
    ends_of,
    family,
    fit_table,
    fits,
    no_column,
    no_table,
    types_in,
)
from secant.policy.following import following
from secant.policy.norms import Measure, columns_of, measures_of, parse_norm
from secant.policy.people import about_people
from secant.policy.policy import ColumnFacts, Policy, Protection, PublicRows, TableFacts
from secant.policy.problems import SEVERITIES, Problem
from secant.policy.problems import problem_at as _problem
from secant.policy.ties import following_problems, tie_problems
from secant.policy.values import describe_range
from secant.schema.catalog import Catalog, Table
from secant.schema.types import Type

MENDED = "correct the keys above; nothing was read or run"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check_policy(policy: Policy, catalog: Catalog) -> tuple[Problem, ...]:
    """Give everything that is wrong, missing or worth knowing, errors first."""
    problems = [
        *_table_problems(policy, catalog),
        *_protection_problems(policy, catalog),
        *_public_problems(policy, catalog),
        *following_problems(policy, catalog),
        *tie_problems(policy, catalog),
    ]
    once = dict.fromkeys(problems)  # two protections can miss the same fact
    return tuple(sorted(once, key=lambda p: (SEVERITIES.index(p.severity), p.line or 0)))


def fit_policy(policy: Policy, catalog: Catalog) -> Policy:
    """Give the policy with every value in the type of its column; refuse one that does not fit.

    Raises:
        PolicyError: POL-002 with every error of `check_policy`, POL-005 if a table is left open.
    """
    errors = [p for p in check_policy(policy, catalog) if p.severity == "error"]
    if errors:
        name = policy.path or "the policy"
        message = f"{name} does not fit the database"
        code = "POL-005" if open_tables(policy, catalog) else "POL-002"
        details = tuple(str(problem) for problem in errors)
        raise PolicyError(code, message, details=details, hint=open_hint(policy, catalog) or MENDED)
    labeled = {name: policy.facts(name) for name, table in catalog.tables.items() if table.labels}
    tables = {
        name: fit_table(facts, table)
        for name, facts in {**labeled, **policy.tables}.items()
        if (table := catalog.table(name)) is not None
    }
    for protection in policy.protections:
        if protection.unit is not None:
            name, column = protection.unit
            # The engine keeps one row for each unit: nobody need say so again.
            if not policy.facts(name).key and (column,) in _unique_keys(catalog, name):
                tables[name] = replace(tables.get(name, policy.facts(name)), key=(column,))
    elements = element_tables(replace(policy, tables=tables), catalog)
    open_ones = (e for e in elements if elements_of(e) in policy.public)
    return replace(policy, tables={**tables, **elements}, public=(*policy.public, *open_ones))


def _unique_keys(catalog: Catalog, table: str) -> frozenset[tuple[str, ...]]:
    """Give the columns that the engine keeps unique."""
    stored = catalog.table(table)
    names = stored.unique if stored is not None else ()
    return frozenset(tuple(column.lower() for column in columns) for columns in names)


def _table_problems(policy: Policy, catalog: Catalog) -> Iterator[Problem]:
    for name, facts in policy.tables.items():
        path = ("tables", name)
        table = catalog.table(name)
        if table is None:
            yield _problem(policy, "error", path, no_table(catalog, name))
            continue
        types = types_in(table, facts)
        for column in facts.key:
            if column not in types:
                yield _problem(policy, "error", (*path, "key"), no_column(table, column))
        for column in facts.derived:
            if column not in types:
                here = (*path, "derived", column)
                yield _problem(policy, "error", here, no_column(table, column))
        for column, target in facts.references.items():
            here = (*path, "references", column)
            if column not in types:
                yield _problem(policy, "error", here, no_column(table, column))
            yield from _reference_problems(policy, catalog, here, target, types.get(column))
        for column, column_facts in facts.columns.items():
            here = (*path, "columns", column)
            if column not in types:
                yield _problem(policy, "error", here, no_column(table, column))
            else:
                yield from _fact_problems(policy, here, column_facts, types[column])


def _reference_problems(
    policy: Policy,
    catalog: Catalog,
    here: tuple[str, ...],
    target: tuple[str, str],
    source_type: Type | None,
) -> Iterator[Problem]:
    table, column = target
    stored = catalog.table(table)
    if stored is None:
        yield _problem(policy, "error", here, no_table(catalog, table))
        return
    types = {name.lower(): type_ for name, type_ in stored.columns}
    if column not in types:
        yield _problem(policy, "error", here, f"there is no column {table}.{column}")
        return
    unique = {tuple(name.lower() for name in names) for names in stored.unique}
    if policy.facts(table).key != (column,) and (column,) not in unique:
        message = (
            f'{table}.{column} is not declared as the key of {table}; write key = ["{column}"]'
        )
        yield _problem(policy, "error", here, message)
    if source_type is not None and family(source_type) != family(types[column]):
        message = f"is {source_type}, but {table}.{column} is {types[column]}"
        yield _problem(policy, "error", here, message)


def _fact_problems(
    policy: Policy, here: tuple[str, ...], facts: ColumnFacts, type_: Type
) -> Iterator[Problem]:
    """Hold each fact against the column's type."""
    if facts.range is not None:
        if family(type_) not in ("number", "temporal"):
            message = f"a range needs a number or a date, and the column is {type_}"
            yield _problem(policy, "error", (*here, "range"), message)
        elif not all(fits(end, type_) for end in ends_of(facts, type_)):
            message = f"the ends do not have the column's type, {type_}"
            yield _problem(policy, "error", (*here, "range"), message)
    if facts.values is not None and not all(fits(value, type_) for value in facts.values):
        message = f"the values do not have the column's type, {type_}"
        yield _problem(policy, "error", (*here, "values"), message)
    if facts.step is not None:
        if family(type_) not in ("number", "temporal"):
            message = f"a step needs a number or a date, and the column is {type_}"
            yield _problem(policy, "error", (*here, "step"), message)
        elif type_.kind == "INTEGER" and not fits(facts.step, type_):
            message = "must be whole, because the column is INTEGER"
            yield _problem(policy, "error", (*here, "step"), message)
    if facts.moves and not type_.numeric:
        message = f"moves needs a number, and the column is {type_}"
        yield _problem(policy, "error", (*here, "moves"), message)
    if facts.density is not None and family(type_) not in ("number", "temporal"):
        message = f"a density needs a number or a date, and the column is {type_}"
        yield _problem(policy, "error", (*here, "density"), message)
    if facts.assumed and facts.range is not None:
        shown = describe_range(ends_of(facts, type_))
        message = f"no range is declared; {shown} follows from what is believed, and is clamped to"
        yield _problem(policy, "note", here, message)


def _protection_problems(policy: Policy, catalog: Catalog) -> Iterator[Problem]:
    for protection in policy.protections:
        path = ("protections", protection.name)
        named = [("tables", table) for table in protection.tables or ()]
        named += [("limits", table) for table in protection.limits]
        named += [("time", table) for table in protection.time]
        named += [("distance", table) for table in protection.distance]
        named += [("rows", table) for table in protection.row_norms]
        named += [("add_remove", table) for table in protection.add_remove]
        named += [("public_rows", table) for table in protection.public_rows]
        for key, table in named:
            if catalog.table(table) is None:
                yield _problem(policy, "error", (*path, key), no_table(catalog, table))
        if protection.kind == "rows+cells":
            for table in protection.distance.keys() - protection.add_remove.keys():
                message = f"which distance does a row of {table} count as? Every table needs one"
                yield _problem(policy, "error", (*path, "add_remove"), message)
        if protection.unit is not None:
            yield from _unit_problems(policy, catalog, protection, protection.unit)
        yield from _distance_problems(policy, catalog, protection)
        yield from _public_rows_problems(policy, catalog, protection)
        yield from _missing_facts(policy, catalog, protection)


def _unit_problems(
    policy: Policy, catalog: Catalog, protection: Protection, unit: tuple[str, str]
) -> Iterator[Problem]:
    path = ("protections", protection.name)
    table = catalog.table(unit[0])
    if table is None:
        yield _problem(policy, "error", (*path, "unit"), no_table(catalog, unit[0]))
        return
    if unit[1] not in {column.lower() for column, _ in table.columns}:
        yield _problem(policy, "error", (*path, "unit"), no_column(table, unit[1]))
        return
    if protection.personal is not None:
        name = protection.personal.column[1]
        kinds = {column.lower(): type_ for column, type_ in table.columns}
        if name not in kinds or not kinds[name].numeric:
            message = f"there is no column {unit[0]}.{name} of numbers"
            yield _problem(policy, "error", (*path, "personal"), message)
    reached = reaches_unit(policy, unit[0])
    if protection.kind == "window":
        yield from _time_problems(policy, catalog, protection, reached)
        return
    for limited in protection.limits:
        base = elements_of(limited) or limited
        if base not in reached and catalog.table(limited) is not None:
            message = f"no reference leads from {limited} to {unit[0]}, so a limit says nothing"
            yield _problem(policy, "error", (*path, "limits", limited), message)
    for name in sorted(reached):
        facts = policy.facts(name)
        if _one_row_each(policy, catalog, protection, name):
            continue
        if name not in protection.limits:
            message = f"no limit for {name}: {_without_limit(policy, protection, name)}"
            yield _problem(policy, "warning", (*path, "limits"), message)
        if len([1 for target, _ in facts.references.values() if target in reached]) > 1:
            message = f"{name} leads to {unit[0]} along more than one reference: it is refused"
            yield _problem(policy, "warning", ("tables", name, "references"), message)


def _one_row_each(policy: Policy, catalog: Catalog, protection: Protection, name: str) -> bool:
    """Whether a unit has one row of the table, so that no limit is needed."""
    unit = protection.unit
    if unit is None or name != unit[0]:
        return False
    return unit[1:] in (policy.facts(name).key, *_unique_keys(catalog, name))


def _without_limit(policy: Policy, protection: Protection, name: str) -> str:
    """Say what becomes of questions about a table of which nobody declared how many rows a unit has."""
    only = "so only how many units there are is answered"
    if protection.truncation == "fixed":
        return f"limits are fixed, {only}"
    if protection.personal is not None:
        return f"units give different amounts, {only}"
    if _hiding(policy, name) != (protection,):
        return f"another protection covers it too, {only}"
    adds = "how much one unit adds to COUNT, SUM and AVG"
    return f"{adds}, and weighs in MIN, MAX, MEDIAN and quantiles, is limited by a private choice"


def _hiding(policy: Policy, name: str) -> tuple[Protection, ...]:
    return tuple(p for p in policy.protections if is_protected(name, policy, (p,)))


def _is_inferred(policy: Policy, name: str) -> bool:
    """Whether a question finds what nobody declared of a table: one protection alone, and all units give alike."""
    alike = all(p.personal is None for p in policy.protections)
    return alike and [p.kind in ("rows", "unit") for p in _hiding(policy, name)] == [True]


def _time_problems(
    policy: Policy, catalog: Catalog, protection: Protection, reached: frozenset[str]
) -> Iterator[Problem]:
    """Hold the tables of a stretch of time, and the columns that say when their rows are, against the catalog."""
    path = ("protections", protection.name)
    for name, column in protection.time.items():
        table = catalog.table(name)
        if table is None:
            continue
        kinds = {c.lower(): type_.kind for c, type_ in table.columns}
        kinds_allowed = (
            ("DATE", "TIMESTAMP") if protection.within and protection.within.unit else ("INTEGER",)
        )
        if name not in reached:
            unit = ".".join(protection.unit or ())
            message = f"no reference leads from {name} to {unit}, so its rows belong to nobody"
            yield _problem(policy, "error", (*path, "time", name), message)
        if column not in kinds:
            yield _problem(
                policy, "error", (*path, "time", name), f"there is no column {name}.{column}"
            )
        elif kinds[column] not in kinds_allowed:
            needs = f"a stretch of {protection.within} needs {' or '.join(kinds_allowed)}"
            message = f"{name}.{column} is {kinds[column]}; {needs}"
            yield _problem(policy, "error", (*path, "time", name), message)
        if name not in protection.limits:
            message = f"no limit for {name}: streams over it are refused, but for counts of different units"
            yield _problem(policy, "warning", (*path, "limits"), message)
    for limited in protection.limits:
        if limited not in protection.time:
            message = f"{limited} is not among the tables of `time`, so a limit says nothing"
            yield _problem(policy, "error", (*path, "limits", limited), message)


def _distance_problems(
    policy: Policy, catalog: Catalog, protection: Protection
) -> Iterator[Problem]:
    for name, text in protection.distance.items():
        table = catalog.table(name)
        if table is None:
            continue
        path = ("protections", protection.name, "distance", name)
        types = {column.lower(): type_ for column, type_ in table.columns}
        norm = parse_norm(text)
        for column, measure in measures_of(norm).items():
            if measure == "x" or column not in types:
                continue
            if family(types[column]) == "temporal":
                message = f"{measure}({column}) needs a number, and the column is {types[column]}"
                yield _problem(policy, "error", path, message)
            elif not _has_measure(policy.column(name, column), measure):
                start = "above 0" if measure == "ln" else "at 0 or above"
                message = f"{measure}({column}) needs a declared range that starts {start}"
                yield _problem(policy, "error", path, message)
        for column in dict.fromkeys(columns_of(norm)):
            if column not in types:
                yield _problem(policy, "error", path, f"there is no column {name}.{column}")
            elif family(types[column]) not in ("number", "temporal"):
                message = f"{column} is {types[column]}; only numbers and dates have a distance"
                yield _problem(policy, "error", path, message)
            elif column in {
                *policy.facts(name).derived,
                *(c.column.lower() for c in table.computed),
            }:
                message = f"{column} is derived: it moves as the columns do that it follows from"
                yield _problem(policy, "error", path, message)
            elif policy.column(name, column).exact:
                message = f"{column} is declared exact: a distance hides what everybody knows"
                yield _problem(policy, "warning", path, message)


def _has_measure(facts: ColumnFacts, measure: Measure) -> bool:
    """Whether every value of the declared range has a logarithm, or a square root."""
    low = facts.range[0] if facts.range else None
    return isinstance(low, (int, Decimal)) and (low > 0 if measure == "ln" else low >= 0)


def _public_rows_problems(
    policy: Policy, catalog: Catalog, protection: Protection
) -> Iterator[Problem]:
    for name, rows in protection.public_rows.items():
        table = catalog.table(name)
        if table is None:
            continue
        path = ("protections", protection.name, "public_rows", name)
        types = {column.lower(): type_ for column, type_ in table.columns}
        if name not in protection.distance:
            message = f"{name} has no distance, so all its rows are public already"
            yield _problem(policy, "error", path, message)
        if rows.condition is not None and _PLAIN_NAME.match(rows.condition):
            yield from _flag_problems(policy, path, name, rows.condition.lower(), types)
        if rows.ids is not None and rows.key is not None:
            yield from _listed_problems(policy, catalog, protection, path, rows, types)


def _flag_problems(
    policy: Policy, path: tuple[str, ...], name: str, column: str, types: dict[str, Type]
) -> Iterator[Problem]:
    """A name that stands alone is a boolean column; other conditions are read with the queries."""
    if column in ("true", "false"):
        return
    if column not in types:
        yield _problem(policy, "error", path, f"there is no column {name}.{column}")
    elif types[column].kind != "BOOLEAN":
        message = f"{column} is {types[column]}; a column that marks rows is BOOLEAN"
        yield _problem(policy, "error", path, message)


def _listed_problems(
    policy: Policy,
    catalog: Catalog,
    protection: Protection,
    path: tuple[str, ...],
    rows: PublicRows,
    types: dict[str, Type],
) -> Iterator[Problem]:
    assert rows.ids is not None
    assert rows.key is not None
    table, column = rows.ids
    stored = catalog.table(table)
    listed = {} if stored is None else {name.lower(): type_ for name, type_ in stored.columns}
    if rows.key not in types:
        yield _problem(policy, "error", path, f"there is no column {path[-1]}.{rows.key}")
    elif rows.key in moving_columns(protection, path[-1]):
        # Else a value that moves would take its own protection away.
        message = f"{rows.key} is in the distance, so it cannot tell which rows are public"
        yield _problem(policy, "error", path, message)
    if stored is None:
        yield _problem(policy, "error", path, f"there is no table {table}")
    elif column not in listed:
        yield _problem(policy, "error", path, f"there is no column {table}.{column}")
    elif rows.key in types and family(types[rows.key]) != family(listed[column]):
        message = f"{rows.key} is {types[rows.key]}, but {table}.{column} is {listed[column]}"
        yield _problem(policy, "error", path, message)
    if is_protected(table, policy, policy.protections):
        message = f"{table} is protected, so it cannot tell which rows are public"
        yield _problem(policy, "error", path, message)


def _missing_facts(policy: Policy, catalog: Catalog, protection: Protection) -> Iterator[Problem]:
    """Say which facts would let more questions be answered."""
    for name in sorted(protected_tables(policy, protection, catalog)):
        facts = policy.facts(name)
        table = catalog.tables[name]
        if not facts.key and not table.unique and protection.unit is not None:
            message = f"{name} is protected but has no key: joins with it may be refused or need more noise"
            yield _problem(policy, "warning", ("tables", name), message)
        open_columns = [
            column.lower()
            for column, type_ in table.columns
            if type_.numeric
            and _says_nothing(column.lower(), facts)
            and column.lower() not in following(policy, table)
        ]
        if open_columns:
            listed = ", ".join(open_columns)
            # where limits are fixed and there is none, a range does not help
            limited = protection.truncation != "fixed" or name in protection.limits
            countable = limited or _one_row_each(policy, catalog, protection, name)
            effect = "SUM, AVG, MIN, MAX and MEDIAN over them are refused"
            if countable and _is_inferred(policy, name):
                free = protection.tallied and len(policy.protections) == 1  # rewrite.wide
                who = "SUM and AVG need none; for" if free else "for SUM, AVG,"
                effect = (
                    f"{who} MIN, MAX and MEDIAN over them one is found privately, once, "
                    "with a part of epsilon"
                )
            message = f"no range for {listed}: {effect}, unless the question limits them by BETWEEN"
            yield _problem(policy, "warning", ("tables", name, "columns"), message)


def _says_nothing(column: str, facts: TableFacts) -> bool:
    column_facts = facts.columns.get(column, ColumnFacts())
    identifies = column in facts.key or column in facts.references
    nothing = column_facts.range is None and column_facts.values is None and not column_facts.moves
    return not identifies and nothing


def _public_problems(policy: Policy, catalog: Catalog) -> Iterator[Problem]:
    """What is public was named so by the owner; whatever is left over is an error, not an opening."""
    for name in policy.public:
        table = catalog.table(name)
        if table is None:
            yield _problem(policy, "error", ("database", "public"), no_table(catalog, name))
            continue
        covering = [p for p in policy.protections if name in tables_of(policy, p)]
        for protection in covering:
            message = f"{name} is named public, but {protection.name} protects it: {_keep_out(name, protection)}"
            yield _problem(policy, "error", ("database", "public"), message)
        doubt = None if covering else _doubt(policy, table)
        if doubt is not None:
            message = f"{name} is PUBLIC, everybody may see every row of it; {doubt}"
            yield _problem(policy, "warning", ("database", "public"), message)
    for name, table_coverage in coverage(policy, catalog).items():
        if table_coverage.rows and table_coverage.public_columns:
            listed = ", ".join(table_coverage.public_columns)
            message = f"who chooses to protect only values of {name} sees its rows and {listed}: they are PUBLIC then"
            yield _problem(policy, "warning", ("alternatives",), message)
    for name in open_tables(policy, catalog):
        message = "no protection covers it, and it is not named public"
        doubt = _doubt(policy, catalog.tables[name])
        yield _problem(
            policy, "error", ("tables", name), f"{message}; {doubt}" if doubt else message
        )


def open_hint(policy: Policy, catalog: Catalog) -> str:
    """Say what to write about tables that are neither protected nor public; "" if there are none."""
    tables = open_tables(policy, catalog)
    if not tables:
        return ""
    doubtful = [name for name in tables if _doubt(policy, catalog.tables[name])]
    harmless = [name for name in tables if name not in doubtful]
    parts = []
    if doubtful:
        parts.append(
            f"protect {', '.join(doubtful)}: by a references line that leads to the unit, or by a protection"
        )
    if harmless:
        named = ", ".join(f'"{name}"' for name in sorted({*policy.public, *harmless}))
        parts.append(
            f"protect {', '.join(harmless)} or, if nothing there is about people, "
            f"write in [database]: public = [{named}]"
        )
    return "; ".join(parts)


def _keep_out(name: str, protection: Protection) -> str:
    if protection.kind == "rows" and protection.tables is None:
        return f"give it tables = [...] without {name}, or take {name} out of public"
    return f"take {name} out of one of the two"


def _doubt(policy: Policy, table: Table) -> str | None:
    """Give what speaks against showing a table to everybody, from names and declared facts alone."""
    name = table.name.lower()
    references = (
        pair for tie in table.ties for pair in zip(tie.columns, tie.targets, strict=False)
    )
    for column, (target, _) in (*policy.facts(name).references.items(), *references):
        if is_protected(target, policy, policy.protections):
            return f"its column {column} refers to {target}, which is protected"
    for protection in policy.protections:
        unit = protection.unit
        if unit is not None and policy.facts(unit[0]).references.get(unit[1], ("",))[0] == name:
            return f"{unit[0]}.{unit[1]}, the unit of {protection.name}, refers to it: are these the people?"
    suspects = sorted({c.lower() for c, _ in table.columns} & _link_names(policy))
    if suspects:
        return f"its column {suspects[0]} looks like a reference that is not declared"
    description = about_people(table)
    return None if description is None else f"{description} looks like a name for people"


def _link_names(policy: Policy) -> frozenset[str]:
    """Give the names of columns that lead to a unit somewhere: elsewhere they look suspicious."""
    names = set()
    for protection in policy.protections:
        if protection.unit is None:
            continue
        names.add(protection.unit[1])
        reached = reaches_unit(policy, protection.unit[0])
        for name in reached:
            facts = policy.facts(name)
            names |= {c for c, (target, _) in facts.references.items() if target in reached}
            names |= set(facts.key) if len(facts.key) == 1 else set()
    return frozenset(names - {"id"})
