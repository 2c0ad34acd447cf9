"""Whose rows are these? Follows units (people, customers, devices) through a plan.

In: a relation, a policy, a `unit` protection. Out: an Ownership for each relation. Nothing is read from data, and no
declared key is believed: `PROOFS.md` beside this file (O-rules) shows that removing a unit removes exactly the
rows whose owners are that unit alone, whether keys hold or not.

A *term* (via, column, shared) says how a column leads to the owners of a row. With `via` the unit column itself, the
column holds the one owner's id. With `via` = "orders.o_orderkey", the row belongs to the owners of the orders that have
this key: to all of them if `shared`, else to some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from secant.plan import nodes as n
from secant.plan.facts.equalities import equal_columns, exactly_comparable
from secant.plan.facts.lineage import named_in, stored_columns
from secant.plan.facts.reads import expressions, reads, scans
from secant.plan.functions.windows import first_rows, undecided
from secant.plan.rule_table import RuleTable
from secant.plan.typing import fields_of, follows_order
from secant.policy.coverage import reaches_unit
from secant.policy.policy import Policy, Protection
from secant.records import frozen, replace


@frozen
class WayToOwner:
    """A way from a column to the owners of the row."""

    via: str
    column: str
    shared: bool


@frozen
class Blocked:
    """Where rows stop belonging to single units, and why."""

    node: n.Node
    rule: str
    reason: str
    hint: str


@frozen
class Ownership:
    """How the rows of a relation belong to units."""

    touched: bool = False
    """Whether any unit's data matter at all; if not, the relation is public."""
    terms: frozenset[WayToOwner] = frozenset()
    pinned: frozenset[WayToOwner] = frozenset()
    """Outer columns that all rows share their owners with (inside a correlated subquery)."""
    expected: int | None = None
    """Rows of one unit, at most, if the declared limits hold. Enforced later, so only utility rests on it."""
    guaranteed: int | None = None
    """Rows of one unit, at most, whatever the data."""
    missing: tuple[str, ...] = ()
    """What the owner could declare so that `expected` is known."""
    keys: tuple[frozenset[str], ...] = ()
    """Column sets that identify a row if declared keys hold. Only utility rests on them."""
    numbered: frozenset[str] = frozenset()
    """Columns that number the rows of each unit, from 1 and each number once (owner.window)."""
    blocked: Blocked | None = None

    @property
    def local(self) -> bool:
        """Whether every row belongs to its owners alone."""
        return self.touched and self.blocked is None


class Paths:
    """The references that lead from each table to the unit, found once for a policy and a protection."""

    def __init__(self, policy: Policy, protection: Protection) -> None:
        assert protection.unit is not None
        self.policy = policy
        self.protection = protection
        table, column = protection.unit
        self.unit = f"{table}.{column}"
        self.owner_table = table
        self.reached = reaches_unit(policy, table)
        self.parents: dict[str, list[tuple[str, str, str]]] = {
            name: [
                (c, p, k)
                for c, (p, k) in sorted(policy.facts(name).references.items())
                if p in self.reached and p != name
            ]
            for name in sorted(self.reached - {table})
        }
        """Table -> (its column, parent table, parent column), for parents that lead to the unit."""

    def ambiguous(self, table: str) -> bool:
        """Whether a table's rows could belong to different units along different references."""
        return len(self.parents.get(table, ())) > 1

    def referenced(self, table: str) -> frozenset[str]:
        """Give the columns of a table that children refer to."""
        return frozenset(
            k for ways in self.parents.values() for _, parent, k in ways if parent == table
        )

    def limit(self, table: str) -> int | None:
        """Give the declared rows per unit: one where the unit's own column is declared as the key of its table."""
        declared = self.protection.limits.get(table)
        alone = self.protection.unit == (table, *self.policy.facts(table).key)
        return 1 if declared is None and alone else declared


OWNERSHIP: RuleTable[Callable[..., Ownership]] = RuleTable("ownership")


@dataclass
class Ownerships:
    """Ownership of every relation of one plan, each computed once."""

    paths: Paths
    done: dict[n.Relation, Ownership] = field(default_factory=dict)

    def of(self, relation: n.Relation) -> Ownership:
        """Give the ownership of a relation."""
        ownership = self.done.get(relation)
        if ownership is None:
            rule = OWNERSHIP.find(relation)
            if rule is None:
                ownership = _stop(
                    relation, "owner.unknown", f"{type(relation).__name__} has no rule", ""
                )
            else:
                ownership = self._accounted(relation, self._asking(relation, rule(self, relation)))
            if ownership.blocked is not None:
                ownership = Ownership(
                    touched=True, blocked=ownership.blocked
                )  # nothing else is claimed
            self.done[relation] = ownership
        return ownership

    def _asking(self, relation: n.Relation, ownership: Ownership) -> Ownership:
        """Check every expression of a relation, whichever rule it has: no rule can forget one (owner.subquery)."""
        if ownership.blocked is not None:
            return ownership
        # A join's condition stands on the joined rows, all else on the rows of the one input.
        inputs = [self.of(c) for c in n.children(relation) if isinstance(c, n.Relation)]
        rows = inputs[0] if len(inputs) == 1 else ownership
        condition = relation.predicate if isinstance(relation, n.Filter) else None
        if isinstance(relation, n.Join):
            condition = relation.condition
        for part in expressions(relation):
            blocked = _blocked_by(self, part, rows, positive=part is condition)
            if blocked is not None:
                return replace(ownership, touched=True, blocked=blocked)
        return ownership

    def _accounted(self, relation: n.Relation, ownership: Ownership) -> Ownership:
        """Let no rule say that no unit matters where a unit's data are read: a second wall behind the rules."""
        if not ownership.touched and reads(relation, self.paths.reached.__contains__):
            return _stop(
                relation, "owner.subquery", "data of units are read that no rule accounts for", ""
            )
        return ownership


def _stop(node: n.Node, rule: str, reason: str, hint: str) -> Ownership:
    return Ownership(touched=True, blocked=Blocked(node, rule, reason, hint))


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────


@OWNERSHIP.rule(n.Scan, id="owner.scan")
def _scan(o: Ownerships, node: n.Scan) -> Ownership:
    table = node.table.lower()
    declared = named_in(node, o.paths.policy.facts(table).key)
    keys = (frozenset(declared),) if declared else ()
    if table not in o.paths.reached:
        return Ownership(keys=keys)
    if o.paths.ambiguous(table):
        ways = ", ".join(c for c, _, _ in o.paths.parents[table])
        return _stop(
            node,
            "owner.scan",
            f"rows of {table} lead to the unit along several references ({ways})",
            "keep one of the references in the policy, or split the table",
        )
    unit_table, unit_column = o.paths.unit.rsplit(".", 1)
    names = {base: name for name, base in stored_columns(node).items()}
    terms = {
        WayToOwner(f"{table}.{c}", names[c], False) for c in o.paths.referenced(table) if c in names
    }
    if table == unit_table and unit_column in names:
        column = names[unit_column]
        terms = {t for t in terms if t.via != o.paths.unit} | {
            WayToOwner(o.paths.unit, column, True)
        }
    for column, parent, key in o.paths.parents.get(table, ()):
        if column in names:
            terms.add(WayToOwner(f"{parent}.{key}", names[column], True))
    limit = o.paths.limit(table)
    missing = () if limit is not None else (f"limits.{table}",)
    return Ownership(True, frozenset(terms), frozenset(), limit, None, missing, keys)


@OWNERSHIP.rule(n.Values, n.Released, id="owner.public")
def _public(o: Ownerships, node: n.Relation) -> Ownership:
    return Ownership()


# ── one input ────────────────────────────────────────────────────────────────────────────────────


@OWNERSHIP.rule(n.Filter, id="owner.filter")
def _filter(o: Ownerships, node: n.Filter) -> Ownership:
    inner = o.of(node.input)
    parts = n.conjuncts(node.predicate)
    first = min(
        (m for p in parts if (m := first_rows(inner.numbered, p)) is not None), default=None
    )
    if first is not None and inner.local:
        sure, wished = (
            first if x is None else min(first, x) for x in (inner.guaranteed, inner.expected)
        )
        inner = replace(inner, guaranteed=sure, expected=wished, missing=())
    return replace(inner, pinned=inner.pinned | _pins(inner, parts))


def _pins(inner: Ownership, parts: Iterable[n.Scalar]) -> frozenset[WayToOwner]:
    pins = set()
    for part in parts:
        if isinstance(part, n.Compare) and part.op == "=":
            for a, b in ((part.left, part.right), (part.right, part.left)):
                if isinstance(a, n.Column) and isinstance(b, n.Outer) and exactly_comparable(a, b):
                    pins |= {
                        WayToOwner(t.via, b.name, t.shared)
                        for t in inner.terms
                        if t.column == a.name
                    }
    return frozenset(pins)


def _blocked_by(
    o: Ownerships, expression: n.Node, rows: Ownership, *, positive: bool
) -> Blocked | None:
    """Check that each subquery of an expression sees only the units of the row that it stands on, or public data.

    `positive` says that it is only asked whether the expression is true: as a value, unknown and false differ.
    """
    tests = n.conjuncts(expression) if positive and isinstance(expression, n.Scalar) else ()
    tested = {id(p) for p in tests}
    for part in _subqueries(expression):
        inner = o.of(part.relation)
        if not inner.touched:
            continue
        if inner.blocked is not None:
            return inner.blocked
        links = inner.pinned
        inside = fields_of(part.relation)[0] if isinstance(part, n.InSubquery) else None
        if (
            isinstance(part, n.InSubquery)
            and inside is not None
            and id(part) in tested
            and isinstance(part.operand, n.Column)
            and exactly_comparable(part.operand, inside)
        ):
            # TRUE needs a match, and a match has the operand's owners. NOT IN would also see NULLs of others.
            links |= {
                WayToOwner(t.via, part.operand.name, t.shared)
                for t in inner.terms
                if t.column == inside.name
            }
        if not any(_linked(t, link) for t in rows.terms for link in links):
            return Blocked(
                part,
                "owner.subquery",
                "the subquery looks at the data of other units",
                "tie the subquery to the row by the unit's key, or ask the subquery first",
            )
    return None


def _linked(term: WayToOwner, link: WayToOwner) -> bool:
    """The subquery's rows belong to all owners of the row: then they stay as long as the row can stay."""
    return term.via == link.via and term.column == link.column and link.shared


def _subqueries(root: n.Node) -> list[n.Exists | n.InSubquery | n.ScalarSubquery]:
    """Give the subqueries of an expression, not those inside them."""
    if not n.has_subquery(root):
        return []
    nodes = n.reached(root, lambda node: not isinstance(node, n.Relation))
    return [x for x in nodes if isinstance(x, (n.Exists, n.InSubquery, n.ScalarSubquery))]


@OWNERSHIP.rule(n.Project, id="owner.project")
def _project(o: Ownerships, node: n.Project) -> Ownership:
    inner = o.of(node.input)
    names: dict[str, list[str]] = {}
    for item in node.items:
        if isinstance(item.expression, n.Column):
            names.setdefault(item.expression.name, []).append(item.name)
    terms = frozenset(
        replace(t, column=new) for t in inner.terms for new in names.get(t.column, ())
    )
    keys = tuple(
        frozenset(names[c][0] for c in k) for k in inner.keys if all(c in names for c in k)
    )
    numbered = frozenset(new for c in inner.numbered for new in names.get(c, ()))
    return replace(inner, terms=terms, keys=keys, numbered=numbered)


@OWNERSHIP.rule(n.Window, id="owner.window")
def _window(o: Ownerships, node: n.Window) -> Ownership:
    inner = o.of(node.input)
    if not inner.local:
        return inner
    own = {x.column for x in inner.terms if x.via == o.paths.unit}
    apart = {x.column for x in _separating(inner.terms)}
    tied = any(t.shared for t in inner.pinned)
    numbered = set(inner.numbered)
    for call in node.calls:
        by = [p.name if isinstance(p, n.Column) else "" for p in call.partition]
        if not apart & set(by) and not tied:
            return _stop(
                call,
                "owner.window",
                "the window holds rows of different units",
                "put the unit's key among PARTITION BY, or aggregate first: all windows over released numbers are free",
            )
        if undecided(call) or follows_order(call):
            return _stop(
                call,
                "owner.window",
                f"{call.function} over this window may follow the order in which the engine meets rows",
                "count ROWS in the frame; of reals, sum an INTEGER or a DECIMAL",
            )
        if call.function == "row_number" and by and own.issuperset(by):
            numbered.add(call.name)
    return replace(inner, numbered=frozenset(numbered))


@OWNERSHIP.rule(n.Sort, id="owner.sort")
def _sort(o: Ownerships, node: n.Sort) -> Ownership:
    return o.of(node.input)


@OWNERSHIP.rule(n.Limit, id="owner.limit")
def _limit(o: Ownerships, node: n.Limit) -> Ownership:
    inner = o.of(node.input)
    if not inner.touched:
        return replace(inner, keys=())
    return _stop(
        node,
        "owner.limit",
        "LIMIT below an aggregate lets one unit decide which rows of others are seen",
        "aggregate first, then limit",
    )


@OWNERSHIP.rule(n.Distinct, id="owner.distinct")
def _distinct(o: Ownerships, node: n.Distinct) -> Ownership:
    inner = o.of(node.input)
    whole = frozenset(f.name for f in fields_of(node))
    if inner.touched and inner.blocked is None and not _separating(inner.terms):
        return _stop(
            node,
            "owner.distinct",
            "DISTINCT merges rows of different units",
            "keep the unit's key among the columns",
        )
    return replace(inner, terms=_separating(inner.terms), keys=(*inner.keys, whole))


def _separating(terms: frozenset[WayToOwner]) -> frozenset[WayToOwner]:
    """Terms by which rows of equal value have equal owners: a specific term only narrows the owners down."""
    return frozenset(t for t in terms if t.shared)


@OWNERSHIP.rule(n.Aggregate, id="owner.aggregate")
def _aggregate(o: Ownerships, node: n.Aggregate) -> Ownership:
    inner = o.of(node.input)
    names = {k.expression.name: k.name for k in node.keys if isinstance(k.expression, n.Column)}
    keys = (frozenset(k.name for k in node.keys),)
    if inner.blocked is not None:
        return replace(inner, keys=keys)
    if not inner.touched:
        return Ownership(keys=keys)
    terms = frozenset(
        replace(t, column=names[t.column]) for t in _separating(inner.terms) if t.column in names
    )
    pinned = frozenset(t for t in inner.pinned if t.shared)
    if not terms and not pinned:
        return _stop(
            node,
            "owner.aggregate",
            "the inner aggregate mixes rows of different units",
            "group by the unit's key inside, or release the inner aggregate first",
        )
    alone = len(node.keys) == 1 and any(t.via == o.paths.unit for t in terms)
    one = 1 if alone else None
    expected = 1 if alone else inner.expected
    return Ownership(True, terms, pinned, expected, one, () if alone else inner.missing, keys)


@OWNERSHIP.rule(n.Truncate, id="owner.truncate")
def _truncate(o: Ownerships, node: n.Truncate) -> Ownership:
    inner = _by_own_column(o, node, "owner.truncate")
    if not inner.local:
        return inner
    smallest = node.limit if inner.guaranteed is None else min(node.limit, inner.guaranteed)
    return replace(inner, guaranteed=smallest, expected=smallest, missing=())


@OWNERSHIP.rule(n.TruncateGroups, id="owner.truncate_groups")
def _truncate_groups(o: Ownerships, node: n.TruncateGroups) -> Ownership:
    return _by_own_column(o, node, "owner.truncate_groups")


def _by_own_column(o: Ownerships, node: n.Truncate | n.TruncateGroups, rule: str) -> Ownership:
    """Truncation keeps rows apart only if it goes by this unit's own column."""
    inner = o.of(node.input)
    owners = {t.column for t in inner.terms if t.via == o.paths.unit}
    if not inner.local or (len(node.owner) == 1 and node.owner[0] in owners):
        return inner
    return _stop(
        node,
        rule,
        "rows are limited by the unit of another protection, where units of this one push each other out",
        "let one unit protection cover the table",
    )


# ── two inputs ───────────────────────────────────────────────────────────────────────────────────


@OWNERSHIP.rule(n.Join, id="owner.join")
def _join(o: Ownerships, node: n.Join) -> Ownership:
    left, right = o.of(node.left), o.of(node.right)
    equal = equal_columns(node)
    ownership = _joined(o, node, left, right, equal)
    # The condition of a LEFT JOIN leaves every left row in.
    if ownership.blocked is None and node.kind != "left":
        ownership = replace(
            ownership, pinned=ownership.pinned | _pins(ownership, n.conjuncts(node.condition))
        )
    keys = _joined_keys(left, right, equal)
    return replace(ownership, keys=keys)


def _joined(
    o: Ownerships, node: n.Join, left: Ownership, right: Ownership, equal: list[tuple[str, str]]
) -> Ownership:
    for side in (left, right):
        if side.blocked is not None:
            return side
    if not left.touched and not right.touched:
        return Ownership()
    if not right.touched:
        return _beside_public(node, left, right, [b for _, b in equal], node.right)
    if not left.touched:
        if node.kind == "left":
            return _stop(
                node,
                "owner.join",
                "a LEFT JOIN from a public table pads rows that depend on all units",
                "join from the protected table, or use an inner join",
            )
        return _beside_public(node, right, left, [a for a, _ in equal], node.left)
    met = _meet(o, node, left, right, equal)
    if met is None:
        return _stop(
            node,
            "owner.join",
            "the two protected sides are not tied together by the unit",
            "join them on the unit's key or along declared references",
        )
    fan = _fan(right, [b for _, b in equal]), _fan(left, [a for a, _ in equal])
    counts = [a * b for a, b in ((left.expected, fan[0]), (right.expected, fan[1])) if a and b]
    if node.kind == "left" and left.expected and right.expected:
        counts = [left.expected * max(1, fan[0] or right.expected)]
    expected = min(counts) if counts else None
    missing = tuple(dict.fromkeys(left.missing + right.missing)) if expected is None else ()
    if node.kind == "left":
        # Padded rows have no right columns, so only the left side can name their owners.
        return Ownership(True, met[0].terms, met[0].pinned, expected, None, missing)
    terms, pinned = met[0].terms | met[1].terms, met[0].pinned | met[1].pinned
    return Ownership(True, terms, pinned, expected, None, missing)


def _beside_public(
    node: n.Join, owned: Ownership, public: Ownership, columns: list[str], relation: n.Relation
) -> Ownership:
    """Join with a public table: owners stay; how many partners a row has needs a key."""
    if any(key <= set(columns) for key in public.keys):
        # The key is declared, not known.
        return replace(owned, guaranteed=None, numbered=frozenset())
    names = [f"tables.{s.table}.key" for s in scans(relation)]
    return replace(
        owned,
        expected=None,
        guaranteed=None,
        missing=(*owned.missing, names[0] if names else "a table with a .key instead of VALUES"),
        keys=(),
        numbered=frozenset(),
    )


def _meet(
    o: Ownerships, node: n.Join, left: Ownership, right: Ownership, equal: list[tuple[str, str]]
) -> tuple[Ownership, Ownership] | None:
    """Give both sides as they are in the joined rows, if some equality ties their owners together (owner.join)."""
    best: tuple[Ownership, Ownership] | None = None
    for a in left.terms:
        for b in right.terms:
            if a.via != b.via or (a.column, b.column) not in equal:
                continue
            if a.via == o.paths.unit or (a.shared and b.shared):
                return left, right
            if b.shared:
                best = left, _narrowed(o, right)
            elif a.shared and node.kind != "left":
                # With LEFT, a left row could lose its last partner and come back padded.
                best = _narrowed(o, left), right
    return best


def _narrowed(o: Ownerships, side: Ownership) -> Ownership:
    """The joined row belongs to fewer owners than this side's row: only the unit's own id stays exact."""

    def weaker(terms: frozenset[WayToOwner]) -> frozenset[WayToOwner]:
        return frozenset(t if t.via == o.paths.unit else replace(t, shared=False) for t in terms)

    return replace(side, terms=weaker(side.terms), pinned=weaker(side.pinned))


def _fan(side: Ownership, columns: list[str]) -> int | None:
    return 1 if any(key <= set(columns) for key in side.keys) else side.expected


def _joined_keys(
    left: Ownership, right: Ownership, equal: list[tuple[str, str]]
) -> tuple[frozenset[str], ...]:
    keys: list[frozenset[str]] = []
    if any(k <= {b for _, b in equal} for k in right.keys):
        keys += left.keys
    if any(k <= {a for a, _ in equal} for k in left.keys):
        keys += right.keys
    if not keys:
        keys = [a | b for a in left.keys[:2] for b in right.keys[:2]]
    return tuple(dict.fromkeys(keys))


@OWNERSHIP.rule(n.Union, n.Intersect, n.Except, id="owner.set")
def _set_operation(o: Ownerships, node: n.Union | n.Intersect | n.Except) -> Ownership:
    left, right = o.of(node.left), o.of(node.right)
    for side in (left, right):
        if side.blocked is not None:
            return side
    if not left.touched and not right.touched:
        return Ownership()
    names = [
        {f.name: out.name for f, out in zip(fields_of(side), node.columns, strict=True)}
        for side in (node.left, node.right)
    ]
    kinds = {f.name: f for side in (node.left, node.right) for f in fields_of(side)}
    results = {f.name: f for f in node.columns}
    sets = [
        {
            replace(t, column=names[i][t.column])
            for t in _separating(side.terms)
            if exactly_comparable(kinds[t.column], results[names[i][t.column]])
        }
        for i, side in enumerate((left, right))
    ]
    terms = frozenset(sets[0] & sets[1])
    if not terms or not (left.touched and right.touched):
        return _stop(
            node,
            "owner.set",
            "the two sides do not carry the unit's key in the same column",
            "select the unit's key in the same place on both sides",
        )
    counts = (left.expected, right.expected)
    total = None if None in counts else sum(c for c in counts if c)
    expected = total if isinstance(node, n.Union) else left.expected
    missing = tuple(dict.fromkeys(left.missing + right.missing)) if expected is None else ()
    return Ownership(True, terms, left.pinned & right.pinned, expected, None, missing)
