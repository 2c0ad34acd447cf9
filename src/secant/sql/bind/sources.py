"""Names in FROM that a source gives a meaning to: tables of schemas, views, and parts of columns.

In: syntax, the catalog and a scope. Out: scans, views written out in their place, and columns for parts. A view is a
query like any other: it is bound here, so that who owns its rows and how far an answer moves comes out of the same
analyses as if it had been written into the question.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from secant.errors import Span, SqlError, meant
from secant.plan import nodes as n
from secant.plan.typing import type_of
from secant.policy.fit import untaken
from secant.schema import types as t
from secant.schema.catalog import StoredView, Table
from secant.schema.parts import ELEMENTS, OF, Elements, Part
from secant.sql.bind.scope import CommonTable, Scope, Source
from secant.sql.bind.views import with_derived
from secant.sql.bind.written_parts import JSON, ColumnPart, bare, column_part, column_parts
from secant.sql.parse import parse, span_of
from secant.sql.screen import screen

if TYPE_CHECKING:
    from secant.sql.bind.relations import Binder

DEEPEST = 20
"""Views of views."""


# ── tables and views ─────────────────────────────────────────────────────────────────────────────


def bind_stored(
    binder: Binder, tree: Any, span: Span | None
) -> tuple[n.Relation, Source] | CommonTable:
    """Bind a name of the catalog: a scan with what is visible of it, or a view as a table that WITH would give."""
    name = binder.catalog.in_schema(tree.db, tree.name) if tree.db else tree.name
    table = binder.catalog.table(name)
    if table is not None:
        return _scan(binder, table, tree, span)
    view = binder.catalog.stored_views.get(name.lower())
    if view is not None:
        return _view(binder, view, tree.root(), span)
    reason = binder.catalog.missing.get(name.lower())
    names = sorted([*binder.catalog.tables, *binder.catalog.stored_views])
    raise SqlError(
        "SQL-002",
        f"the table {name[:80]} is not offered: {reason}"
        if reason
        else f"there is no table {name[:80]}",
        text=binder.text,
        span=span,
        hint=f"{'' if reason else meant(name, names)} the tables are: ".lstrip()
        + ", ".join(names[:40]),
    )


def _scan(binder: Binder, table: Table, tree: Any, span: Span | None) -> tuple[n.Relation, Source]:
    shown = tree.alias or tree.name
    unique = binder.alias(shown)
    parted = {column.lower(): (column, kind) for column, kind in table.parts}
    parts_read: dict[ColumnPart, Part] = {}
    for written_part in column_parts(tree.root()) if parted else ():
        column, way, path = written_part
        if column in parted and parted[column][1] in OF[way]:
            parts_read[written_part] = Part(parted[column][0], way, path)
    spread = _spread(tree, table, shown)
    fields = [n.Field(f"{unique}.{column}", kind) for column, kind in table.columns]
    columns = tuple(
        (column, field.name, field.type)
        for (column, _), field in zip(table.columns, fields, strict=True)
    )
    parts = {w: n.Field(f"{unique}.{part.name}", part.type) for w, part in parts_read.items()}
    more = list({f.name: f for f in parts.values()}.values())
    if len({f.name.lower() for f in more}) < len(more):
        raise binder.scalars.refuse(
            tree, "two fields of a document differ in case only", "ask for them in two questions"
        )
    name = table.name
    elements: tuple[str, n.Field] | None = None
    if spread is not None:
        whole = binder.catalog.table(spread.name)
        assert whole is not None
        rows = n.Field(f"{unique}.{spread.element}", dict(whole.columns)[spread.element])
        name, elements, more = spread.name, (spread.column.lower(), rows), [*more, rows]
    scan = n.Scan(name, unique, (*fields, *more), span)
    relation, derived = with_derived(
        binder, scan, (*columns, *((f.name, f.name, f.type) for f in more)), table.name
    )
    return relation, Source(shown, derived[: len(columns)], parts, _untaken(table), elements)


# ── elements of arrays ───────────────────────────────────────────────────────────────────────────


def unnested(join: Any) -> tuple[exp.Unnest, exp.Expression] | None:
    """Read an item of FROM that is UNNEST of one column; also give what carries its alias."""
    carrier = join.this
    inner = carrier.this if isinstance(carrier, exp.Lateral) else carrier
    if not isinstance(inner, exp.Unnest) or inner.args.get("offset"):
        return None
    return inner, carrier


def _spread(tree: Any, table: Table, shown: str) -> Elements | None:
    """Give the array of a table that the same FROM takes apart."""
    select = tree.find_ancestor(exp.Select)
    arrays = {c.lower(): c for c, kind in table.parts if kind in ELEMENTS}
    for join in (select.args.get("joins") or ()) if select is not None else ():
        unnested_join = unnested(join)
        column = bare(unnested_join[0].expressions[0]) if unnested_join is not None else None
        if isinstance(column, exp.Column) and column.table.lower() in ("", shown.lower()):
            name = arrays.get(column.name.lower())
            if name is not None:
                return Elements(table.name, name)
    return None


def bind_elements(binder: Binder, join: Any, scope: Scope, rows: n.Relation) -> bool:
    """Make the elements of an array visible that UNNEST in FROM names; their rows are those of the table's scan.

    The scan stands below the joins, UNNEST above them: where a join pads rows of the scan, the two differ.
    """
    unnested_join = unnested(join)
    if unnested_join is None:
        return False
    tree, carrier = unnested_join
    column = bare(tree.expressions[0])
    plain = not join.side and (join.args.get("on") is None or join.args["on"] == exp.true())
    if len(tree.expressions) != 1 or not isinstance(column, exp.Column) or not plain:
        raise binder.scalars.refuse(
            tree,
            "UNNEST takes one array column of a table before it",
            "write FROM t, unnest(t.array) AS a(x)",
        )
    sources = [
        s
        for s in scope.sources
        if s.spread is not None
        and s.spread[0] == column.name.lower()
        and column.table.lower() in ("", s.alias.lower())
    ]
    alias = carrier.args.get("alias")
    name = alias.name if alias is not None else "unnest"
    named = [s for s in scope.sources if column.table.lower() in ("", s.alias.lower())]
    if not sources and any("the view" in s.refused.get(column.name.lower(), "") for s in named):
        raise binder.scalars.refuse(
            tree,
            "UNNEST takes arrays of tables, and this is a column of a view",
            "ask the table that the view reads: FROM t, unnest(t.array) AS a(x)",
        )
    if len(sources) != 1 or sources[0].spread is None:
        raise binder.scalars.refuse(
            tree,
            "UNNEST takes an array of text or whole numbers of one table, and one array of each table",
            "take the arrays apart in two questions",
        )
    names = [c.name for c in alias.args.get("columns") or ()] if alias is not None else []
    field = sources[0].spread[1]
    if _pads(rows, field.name):
        raise binder.scalars.refuse(
            tree,
            "UNNEST of an array that an outer join may lack is not accepted",
            "take the array apart in a derived table, (SELECT … FROM t, unnest(t.array) AS a(x)), and join that",
        )
    scope.sources[scope.sources.index(sources[0])] = replace(sources[0], spread=None)
    scope.add(Source(name, (((names or [name])[0], field.name, field.type),)), span_of(tree))
    return True


def _pads(rows: n.Relation, name: str) -> bool:
    """Whether an outer join may leave a row without a column of one of its tables."""
    padded: list[n.Relation] = []
    for node in n.walk(rows):
        if isinstance(node, n.Join) and node.kind == "left":
            padded.append(node.right)
        elif isinstance(node, n.Union):  # a FULL JOIN
            padded += [node.left, node.right]
    scans = (x for side in padded for x in n.walk(side) if isinstance(x, n.Scan))
    return any(name == f.name for scan in scans for f in scan.columns)


def _view(binder: Binder, view: StoredView, outer: Any, span: Span | None) -> CommonTable:
    """Bind the text of a view, once a query; names in it mean what they mean in the source.

    Parts that the query writes of columns that the view shows as they are stored are shown by it as well.
    """
    bound_view = binder.views.get(view.name)
    if bound_view is not None:
        return bound_view
    if len(binder.within) >= DEEPEST:
        raise SqlError("SQL-007", "views stand within views too deep", hint="name a table of them")
    outside = binder.text
    binder.within.append(view.name)
    try:
        tree = screen(parse(_query(view), view.dialect), _query(view))
        binder.retold(_query(view))
        parts_used = _parts_in(outer)
        left = _without_parts(binder, tree)
        added = _with_parts(tree, left, view.columns, parts_used, _starred(binder, tree, 0))
        bound = binder.query(tree, None, {})
    except SqlError as error:
        raise SqlError(
            error.code,
            f"the view {view.name} cannot be asked: {error.message}",
            text=outside,
            span=span,
            hint=error.hint or "ask the tables that it reads",
        ) from None
    finally:
        binder.within.pop()
        binder.retold(outside)
    whole = len(bound.columns) - len(added)
    parts = {
        part: n.Field(unique, kind)
        for part, (_, unique, kind) in zip(added, bound.columns[whole:], strict=True)
    }
    bound = replace(bound, columns=bound.columns[:whole])
    column_names = view.columns or tuple(shown for shown, _, _ in bound.columns)
    names = [name for i, name in enumerate(column_names) if i not in left]
    refused = {
        column_names[i].lower(): f"of the view {view.name}: {reason}"
        for i, (reason, _) in left.items()
    }
    shown = [name for name, _, _ in bound.columns]
    lost = _lower(column_names) - _lower(shown)
    if len(names) > len(shown) and [x.lower() for x in column_names if x.lower() not in lost] == [
        x.lower() for x in shown
    ]:
        # A star in the text stands for columns that can be taken only: the others are told apart by their names.
        refused |= dict.fromkeys(
            lost, f"the view {view.name} shows it whole, and only parts can be asked for"
        )
        names = shown
    if len(names) != len(bound.columns):
        raise SqlError("SQL-006", f"the view {view.name} cannot be read", text=outside, span=span)
    columns = tuple(
        (name, u, kind) for name, (_, u, kind) in zip(names, bound.columns, strict=True)
    )
    binder.views[view.name] = CommonTable(bound.relation, columns, refused, parts)
    return binder.views[view.name]


def _parts_in(outer: Any) -> dict[ColumnPart, Any]:
    """Give the parts that a query writes, each with the syntax that writes it."""
    parts_used: dict[ColumnPart, Any] = {}
    for node in outer.walk():
        part = column_part(node)
        if part is not None:
            column, way, path = part
            parts_used.setdefault((column.name.lower(), way, path), node)
    return parts_used


def _starred(binder: Binder, tree: Any, depth: int) -> dict[str, Any]:
    """Give the columns behind the stars of a SELECT that cannot be taken whole: where each is, and why, by name."""
    columns: dict[str, Any] = {}
    if not _is_plain(tree):
        return columns
    stars = [
        x.table.lower() if isinstance(x, exp.Column) else "" for x in tree.expressions if x.is_star
    ]
    aliases = _untaken_of(binder, tree, depth) if stars else {}
    for star in stars:
        for alias, reasons in aliases.items():
            if star in ("", alias):  # of two with one name, a view shows the first under it
                for name, why in reasons.items():
                    columns.setdefault(name, (exp.column(name, table=star or None), why))
    return columns


def _is_plain(tree: Any) -> bool:
    return isinstance(tree, exp.Select) and not any(tree.args.get(x) for x in ("distinct", "group"))


def _with_parts(
    tree: Any,
    left: dict[int, tuple[str, Any]],
    names: tuple[str, ...],
    parts_used: dict[ColumnPart, Any],
    starred: dict[str, Any],
) -> list[ColumnPart]:
    """Add parts of columns that a view shows to its list; give which, in order."""
    stored = {
        (names[index] if names else item.name).lower(): item for index, (_, item) in left.items()
    }
    shown = {name: column for name, (column, _) in starred.items() if name in _lower(names)}
    added: list[ColumnPart] = []
    for part, node in parts_used.items() if _is_plain(tree) else ():
        name = part[0]
        column = stored.get(name) or shown.get(name)
        if column is None:
            continue
        item = node.copy()
        own = next(x for x in item.find_all(exp.Column) if x.name.lower() == name)
        if own is item:
            continue
        own.replace(column.copy())
        tree.append("expressions", exp.alias_(item, f"part {len(added)}", quoted=True))
        added.append(part)
    return added


def _without_parts(binder: Binder, tree: Any, depth: int = 0) -> dict[int, tuple[str, Any]]:
    """Take out of the list of a SELECT the columns that cannot be taken whole; give their places, why, and which."""
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return {}
    aliases = _untaken_of(binder, tree, depth)
    left: dict[int, tuple[str, Any]] = {}
    for index, item in enumerate(tree.expressions):
        column = item.this if isinstance(item, exp.Alias) else item
        if not isinstance(column, exp.Column):
            continue
        candidates = (
            [aliases.get(column.table.lower(), {})] if column.table else [*aliases.values()]
        )
        for reasons in candidates:
            if column.name.lower() in reasons:
                left[index] = (reasons[column.name.lower()], column)
    remaining = [item for position, item in enumerate(tree.expressions) if position not in left]
    if left and remaining:
        tree.set("expressions", remaining)
    return left if remaining else {}


def _untaken_of(binder: Binder, tree: Any, depth: int) -> dict[str, dict[str, str]]:
    """Give for each table or view in the FROM of a SELECT its columns that cannot be taken whole, and why."""
    reasons_by_column: dict[str, dict[str, str]] = {}
    for item in tree.find_all(exp.Table):
        if item.find_ancestor(exp.Select) is tree:
            name = binder.catalog.in_schema(item.db, item.name) if item.db else item.name
            table, view = binder.catalog.table(name), binder.catalog.stored_views.get(name.lower())
            reasons = _untaken(table) if table is not None else {}
            if table is None and view is not None and depth < DEEPEST:
                reasons = _untaken_by_view(binder, view, depth + 1)
            reasons_by_column[(item.alias or item.name).lower()] = reasons
    return reasons_by_column


def _untaken_by_view(binder: Binder, view: StoredView, depth: int) -> dict[str, str]:
    """Give the columns that a view shows as they are stored, and that cannot be taken whole."""
    tree: Any = screen(parse(_query(view), view.dialect), _query(view))
    if not isinstance(tree, exp.Select):
        return {}
    starred = any(x.is_star for x in tree.expressions)
    below = _starred(binder, tree, depth)
    reasons = {c: why for c, (_, why) in below.items() if c in _lower(view.columns)}
    names = view.columns or tuple(x.alias or x.name for x in tree.expressions)
    places = {} if starred else _without_parts(binder, tree, depth)
    return reasons | {names[index].lower(): why for index, (why, _) in places.items()}


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(str.lower, names))


def _untaken(table: Table) -> dict[str, str]:
    return {column.lower(): reason for column, reason in untaken(table).items()}


def _query(view: StoredView) -> str:
    """Give the query of a view: one engine tells the statement that made it."""
    head = re.match(
        r"\s*CREATE\b.*?\bAS\b\s*(?=\(?\s*(SELECT|WITH|FROM|VALUES)\b)", view.text, re.I | re.S
    )
    query = view.text[head.end() :] if head else view.text
    return query.strip().rstrip(";").replace("count_star()", "count(*)")


# ── parts ────────────────────────────────────────────────────────────────────────────────────────


def bind_part(tree: Any, scope: Scope, text: str) -> n.Scalar | None:
    """Give the column of a part; None if it is a part of nothing that is known here."""
    part = column_part(tree)
    if part is None and isinstance(tree, JSON):
        raise SqlError(
            "SQL-006",
            "a field of a JSON column is taken key by key, as text or as a number",
            text=text,
            span=span_of(tree),
            hint="write doc->'a'->>'b', (doc->>'n')::int or json_extract_string(doc, '$.a.b')",
        )
    if part is None:
        return None
    column, way, path = part
    key = (column.name.lower(), way, path)
    around: Scope | None = scope
    while around is not None:
        sources = [s for s in around.sources if column.table.lower() in ("", s.alias.lower())]
        matches = [s.parts[key] for s in sources if key in s.parts]
        if len(matches) > 1:
            raise SqlError(
                "SQL-003",
                f"the column {column.name} is in several tables",
                text=text,
                span=span_of(tree),
                hint="write the table before it",
            )
        if matches:
            kind = n.Column if around is scope else n.Outer
            return kind(matches[0].name, matches[0].type, span_of(tree))
        around = around.parent
    if isinstance(tree, (exp.Length, exp.ArraySize, exp.Extract)) or way == "seconds":
        return None  # of a text, or of a moment
    raise SqlError(
        "SQL-006",
        f"{column.name[:80]} is no document or array here",
        text=text,
        span=span_of(column),
        hint="a part is taken where the table, or a view of the database, is read: "
        "(SELECT doc->>'a' AS a FROM t)",
    )


# ── constants beside columns of the source's own types ───────────────────────────────────────────

_TIME_OF_DAY = re.compile(r"\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?\s*")


def time_of_day(text: str) -> n.Literal | None:
    """Read a time of day as the moment of one day that stands for it; None if it is none."""
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    micros = int((match[4] or "0").ljust(6, "0"))
    if minute > 59 or second > 59 or hour * 3600 + minute * 60 + second + (micros > 0) > 86_400:
        return None
    passed = datetime.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)
    return n.Literal(datetime.datetime(1970, 1, 1) + passed, t.TIME)  # noqa: DTZ001


def read_beside(text: str, kind: t.Type) -> n.Literal | None:
    """Read a text constant beside a column of such a type as the source would; None if it cannot be read."""
    if kind.form == "TIME":
        return time_of_day(text)
    if kind.form == "UUID":
        try:
            return n.Literal(str(uuid.UUID(text.strip())), t.UUID)
        except ValueError:
            return None
    if kind.form == "BLOB":
        match = re.fullmatch(r"\\x((?:[0-9a-fA-F]{2})*)", text)
        digest = hashlib.sha256(bytes.fromhex(match[1])).hexdigest() if match else None
        return None if digest is None else n.Literal(digest, t.BLOB)
    return n.Literal(text, t.TEXT)


def cast_to_own(operand: n.Scalar, target: Any) -> n.Scalar | None:
    """Give a constant, or a column that is one already, as a value of a type of the source's own; None if it is none.

    Where a query writes the name of an enum, its label is what it is as text.
    """
    name = target.this.name if isinstance(target, exp.DataType) else ""
    kind = {"UUID": t.UUID, "USERDEFINED": t.ENUM, "TIME": t.TIME}.get(name)
    if kind is None:
        return None
    if isinstance(operand, n.Literal) and operand.type == t.TEXT:
        read = read_beside(str(operand.value), kind)
        return n.Literal(read.value, kind) if read is not None else None
    return operand if type_of(operand).form == kind.form and name != "USERDEFINED" else None


def listed_in(tree: Any) -> exp.In | None:
    """Give `x = ANY (ARRAY[...])`, as a server writes lists in its views, as x IN (...)."""
    inner = tree.expression if isinstance(tree, exp.EQ) else None
    array = bare(inner.this) if isinstance(inner, exp.Any) else None
    while isinstance(array, exp.Cast):
        array = bare(array.this)
    if not isinstance(array, exp.Array) or not array.expressions:
        return None
    return exp.In(this=tree.this, expressions=array.expressions)


_OF_TIME = ("hour", "minute", "second")


def nonsense(scalar: n.Scalar) -> str | None:
    """Say what makes no sense about an expression over the source's own types, or gives another answer there."""
    inside = [c for c in n.children(scalar) if isinstance(c, n.Scalar)]
    forms = {form for c in inside if (form := type_of(c).form)}
    if isinstance(scalar, n.Compare):
        if forms & {"BLOB", "ENUM"} and scalar.op not in ("=", "<>"):
            kind = next(iter(forms & {"BLOB", "ENUM"}))
            return f"values of {kind} have an order of their own in the source: compare them by = or IN"
        others = [c for c in inside if type_of(c).form != "TIME" and type_of(c) != t.NULL]
        return "a time of day is compared with a date" if "TIME" in forms and others else None
    if isinstance(scalar, (n.IsNull, n.InList, n.InSubquery, n.Case, n.SameValue)) or not forms:
        return None
    if isinstance(scalar, n.Extract) and scalar.part in _OF_TIME:
        return None
    if forms & {"BLOB", "TIME"} and isinstance(
        scalar, (n.Call, n.Arithmetic, n.Cast, n.Like, n.Extract)
    ):
        if isinstance(scalar, n.Call) and scalar.function in ("coalesce", "nullif"):
            return None
        kind = next(iter(forms & {"BLOB", "TIME"}))
        can = (
            "extract(hour FROM it), and compare it"
            if kind == "TIME"
            else "compare, count and group it"
        )
        return f"this cannot be computed from a {kind}: {can}"
    return None
