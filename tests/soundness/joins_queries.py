"""A grammar of questions about joins: chains, stars, cycles, self-joins, comparisons, alternatives, padding, sets.

In: a `random.Random`. Out: SQL text over the tables of `joins_worlds`. Every column is a small whole number, so that
any two can be compared: most conditions are equalities, so that rows meet and multiply.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from joins_worlds import COLUMNS

T = TypeVar("T")

TABLES = ("r", "r", "s", "s", "t", "e", "e", "p", "m", "o", "d", "n")


@dataclass(frozen=True)
class Atom:
    """Something that stands in FROM, and how its columns are written."""

    text: str
    columns: tuple[str, ...]


@dataclass
class Questions:
    """Draws one question."""

    draw: random.Random
    aliases: int = 0
    with_: list[str] = field(default_factory=list)

    def pick(self, items: Sequence[T]) -> T:
        return self.draw.choice(items)

    def chance(self, p: float) -> bool:
        return self.draw.random() < p

    def question(self) -> str:
        kind = self.draw.random()
        if kind < 0.54:
            text = self.joined(plain=kind < 0.34)
        elif kind < 0.62:
            text = self.ordered()
        elif kind < 0.72:
            text = self.padded()
        elif kind < 0.84:
            text = self.over_set()
        else:
            text = self.with_subquery()
        return (f"WITH {', '.join(self.with_)} " if self.with_ else "") + text

    # ── atoms ────────────────────────────────────────────────────────────────────────────────────

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def table(self, name: str | None = None) -> Atom:
        name, alias = name or self.pick(TABLES), self.alias()
        return Atom(f"{name} {alias}", tuple(f"{alias}.{c}" for c in COLUMNS[name]))

    def atom(self, name: str | None, plain: bool) -> Atom:
        if plain or self.chance(0.6):
            return self.table(name)
        return self.derived(name)

    def derived(self, name: str | None) -> Atom:
        inner, alias = self.table(name), self.alias()
        where = f" WHERE {self.local(inner)}" if self.chance(0.5) else ""
        kind = self.draw.random()
        if kind < 0.35:
            some = self.some(inner)
            text = f"SELECT DISTINCT {_list(some)} FROM {inner.text}{where}"
        elif kind < 0.5:
            some = self.some(inner)
            text = f"SELECT {_list(some)} FROM {inner.text}{where}"
        elif kind < 0.7:
            key = self.pick(inner.columns)
            some = (key, "")
            call = self.pick(("count(*)", f"max({self.pick(inner.columns)})", "count(*)"))
            text = f"SELECT {key} AS x0, {call} AS x1 FROM {inner.text}{where} GROUP BY {key}"
            if self.chance(0.3):
                text += " HAVING count(*) > 1"
        elif kind < 0.93:
            other = self.table(self.pick((name, None)))
            width = min(len(inner.columns), len(other.columns))
            some = inner.columns[:width]
            word = self.pick(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL",
                              "INTERSECT ALL"))  # fmt: skip
            text = (
                f"SELECT {_list(some)} FROM {inner.text}{where} {word} "
                f"SELECT {_list(other.columns[:width])} FROM {other.text}"
            )
        elif kind < 0.96:
            some = self.some(inner)
            text = f"SELECT {_list(some)} FROM {inner.text}{where} ORDER BY 1 LIMIT 2"
        else:
            right = self.table()
            some = (*inner.columns, *right.columns)
            tie = f"{self.pick(inner.columns)} = {self.pick(right.columns)}"
            text = f"SELECT {_list(some)} FROM {inner.text} JOIN {right.text} ON {tie}"
        return Atom(f"({text}) {alias}", tuple(f"{alias}.x{i}" for i in range(len(some))))

    def some(self, atom: Atom) -> tuple[str, ...]:
        columns = list(atom.columns)
        self.draw.shuffle(columns)
        return tuple(columns[: self.draw.randint(1, len(columns))])

    # ── shapes ───────────────────────────────────────────────────────────────────────────────────

    def joined(self, plain: bool) -> str:
        count = self.pick((1, 2, 2, 2, 3, 3, 3, 4))
        one = self.pick(TABLES) if self.chance(0.45) else None
        atoms = [self.atom(one if one and self.chance(0.85) else None, plain) for _ in range(count)]
        if count > 1 and self.chance(0.06):
            shared = self.derived(one)
            name = f"cte{len(self.with_)}"
            self.with_.append(f"{name} AS ({shared.text[1:].rpartition(')')[0]})")
            width = len(shared.columns)
            for index in range(2):
                alias = self.alias()
                atoms[index] = Atom(f"{name} {alias}", tuple(f"{alias}.x{i}" for i in range(width)))
        conditions = self.ties(atoms)
        if self.chance(0.5) or count == 1:
            text = ", ".join(a.text for a in atoms)
            where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        else:
            text, where = self.written_joins(atoms, conditions)
        return self.asked(text, where, atoms)

    def ordered(self) -> str:
        """Copies of one table that an order tells apart, most often by groups."""
        name = self.pick(TABLES)
        atoms = [self.table(name) for _ in range(self.pick((2, 2, 3)))]
        place = self.draw.randrange(len(COLUMNS[name]))
        found = [
            f"{atoms[0].columns[place]} {self.pick(('<', '>', '<', '<='))} {atoms[1].columns[place]}"
        ]
        if self.chance(0.6):
            other = self.draw.randrange(len(COLUMNS[name]))
            found += [f"{a.columns[other]} = {atoms[0].columns[other]}" for a in atoms[1:]]
        if self.chance(0.4):
            third = self.table()
            same = self.draw.randrange(len(COLUMNS[name]))
            column = self.pick(third.columns)
            tied = atoms if self.chance(0.7) else atoms[:1]
            found += [f"{a.columns[same]} = {column}" for a in tied]
            atoms.append(third)
        if self.chance(0.2):
            found.append(self.local(self.pick(atoms)))
        text = ", ".join(a.text for a in atoms)
        return self.asked(text, f" WHERE {' AND '.join(found)}", atoms, grouped=0.6)

    def written_joins(self, atoms: list[Atom], conditions: list[str]) -> tuple[str, str]:
        """Write the same with JOIN ... ON; conditions go to the last alias that they speak of."""
        text = atoms[0].text
        left = list(conditions)
        seen = _names(atoms[0])
        for atom in atoms[1:]:
            seen |= _names(atom)
            here = [c for c in left if _speaks_of(c) <= seen]
            left = [c for c in left if c not in here]
            text += f" JOIN {atom.text} ON {' AND '.join(here) if here else '1 = 1'}"
        return text, f" WHERE {' AND '.join(left)}" if left else ""

    def ties(self, atoms: list[Atom]) -> list[str]:
        found: list[str] = []
        triangle = len(atoms) >= 3 and self.chance(0.25)
        for index in range(1, len(atoms)):
            other = atoms[index - 1] if triangle else self.pick(atoms[:index])
            kind = self.draw.random()
            a, b = self.pick(atoms[index].columns), self.pick(other.columns)
            if triangle or kind < 0.72:
                found.append(f"{a} = {b}")
            elif kind < 0.82:
                found.append(f"{a} {self.pick(('<', '<=', '<>', '>'))} {b}")
            elif kind < 0.88:
                found.append(f"({a} = {b} OR {self.pair(atoms)})")
        if triangle or (len(atoms) > 1 and self.chance(0.25)):
            a, b = self.pick(atoms[0].columns), self.pick(atoms[-1].columns)
            found.append(f"{a} = {b}")
        if self.chance(0.3):
            found.append(self.local(self.pick(atoms)))
        if len(atoms) > 1 and self.chance(0.3):
            found.append(
                self.pick((
                    self.pair(atoms), f"NOT ({self.pair(atoms)} AND {self.pair(atoms)})",
                    f"NOT ({self.pair(atoms)})", f"({self.pair(atoms)} OR {self.pair(atoms)})",
                    f"NOT ({self.pair(atoms)} OR NOT {self.pair(atoms)})",
                    f"({self.pair(atoms)} OR {self.local(self.pick(atoms))})",
                    f"({self.pair(atoms)} AND {self.pair(atoms)} OR {self.local(self.pick(atoms))})",
                ))
            )  # fmt: skip
        return found

    def pair(self, atoms: list[Atom]) -> str:
        a, b = self.pick(self.pick(atoms).columns), self.pick(self.pick(atoms).columns)
        op = self.pick(("=", "=", "=", "<>", "<", ">="))
        if self.chance(0.08):
            return f"{a} IS NOT DISTINCT FROM {b}"
        if self.chance(0.08):
            return f"{a} + 1 {op} {b}"
        return f"{a} {op} {b}"

    def local(self, atom: Atom) -> str:
        a, b = self.pick(atom.columns), self.pick(atom.columns)
        return self.pick((
            f"{a} = 1", f"{a} IN (1, 3)", f"NOT ({a} = 1)", f"{a} BETWEEN 1 AND 2", f"{a} IS NOT NULL",
            f"{a} IS NULL", f"{a} <> {b}", f"{a} = {b}", f"{a} < {b}", f"({a} = 1 OR {b} = 2)",
            f"{a} NOT IN (2, 3)",
        ))  # fmt: skip

    def padded(self) -> str:
        atoms = [self.atom(None, self.chance(0.7)) for _ in range(self.pick((2, 2, 3)))]
        text = atoms[0].text
        for index, atom in enumerate(atoms[1:], start=1):
            before = self.pick(atoms[:index])
            tie = f"{self.pick(atom.columns)} = {self.pick(before.columns)}"
            if self.chance(0.2):
                tie += f" AND {self.pair([atom, before])}"
            word = "LEFT JOIN" if index == 1 or self.chance(0.5) else "JOIN"
            text += f" {word} {atom.text} ON {tie}"
        where = f" WHERE {self.pick((self.local(self.pick(atoms)), self.pair(atoms)))}"
        return self.asked(text, where if self.chance(0.4) else "", atoms)

    def over_set(self) -> str:
        one, two = self.pick(TABLES), self.pick(TABLES)
        first, second = self.atom(one, False), self.atom(self.pick((one, two)), False)
        width = min(len(first.columns), len(second.columns))
        sides = []
        for side in (first, second):
            shown = _list(side.columns[:width])
            if self.chance(0.4):
                other = self.table()
                tie = f"{self.pick(side.columns)} = {self.pick(other.columns)}"
                sides.append(f"SELECT {shown} FROM {side.text}, {other.text} WHERE {tie}")
            else:
                where = f" WHERE {self.local(side)}" if self.chance(0.4) else ""
                sides.append(f"SELECT {shown} FROM {side.text}{where}")
        word = self.pick(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        alias = self.alias()
        union = Atom(
            f"({sides[0]} {word} {sides[1]}) {alias}",
            tuple(f"{alias}.x{i}" for i in range(width)),
        )
        if self.chance(0.5):
            return self.asked(union.text, "", [union])
        third = self.table()
        tie = f"{self.pick(union.columns)} = {self.pick(third.columns)}"
        return self.asked(f"{union.text} JOIN {third.text} ON {tie}", "", [union, third])

    def with_subquery(self) -> str:
        atoms = [self.table() for _ in range(self.pick((1, 1, 2)))]
        conditions = self.ties(atoms) if len(atoms) > 1 else []
        inner = self.table()
        a, b = self.pick(self.pick(atoms).columns), self.pick(inner.columns)
        conditions.append(
            self.pick((
                f"{a} IN (SELECT {b} FROM {inner.text})", f"{a} NOT IN (SELECT {b} FROM {inner.text})",
                f"EXISTS (SELECT 1 FROM {inner.text} WHERE {a} = {b})",
                f"NOT EXISTS (SELECT 1 FROM {inner.text} WHERE {a} = {b} AND {self.local(inner)})",
                f"(SELECT count(*) FROM {inner.text} WHERE {a} = {b}) > 1",
                f"{a} > (SELECT max({b}) FROM {inner.text})",
            ))
        )  # fmt: skip
        text = ", ".join(x.text for x in atoms)
        return self.asked(text, f" WHERE {' AND '.join(conditions)}", atoms)

    # ── what is asked ────────────────────────────────────────────────────────────────────────────

    def asked(self, source: str, where: str, atoms: list[Atom], grouped: float = 0.3) -> str:
        columns = [c for a in atoms for c in a.columns]
        calls = [self.call(columns)]
        if self.chance(0.15):
            calls.append(self.call(columns))
        if not self.chance(grouped):
            return f"SELECT {', '.join(calls)} FROM {source}{where}"
        keys = [self.pick(columns)]
        if self.chance(0.15):
            keys.append(self.pick(columns))
        keys = list(dict.fromkeys(keys))
        shown = ", ".join([*keys, *calls])
        return f"SELECT {shown} FROM {source}{where} GROUP BY {', '.join(keys)}"

    def call(self, columns: list[str]) -> str:
        a, b = self.pick(columns), self.pick(columns)
        return self.pick((
            "count(*)", "count(*)", "count(*)", "count(*)", f"count({a})", f"count(DISTINCT {a})", f"sum({a})",
            f"sum({a} * {b})", f"sum(CASE WHEN {a} = {b} THEN 2 ELSE 1 END)", f"sum(DISTINCT {a})",
        ))  # fmt: skip


def _list(columns: Sequence[str]) -> str:
    return ", ".join(f"{c} AS x{i}" for i, c in enumerate(columns))


def _names(atom: Atom) -> set[str]:
    return {c.partition(".")[0] for c in atom.columns}


def _speaks_of(condition: str) -> set[str]:
    return {
        word.strip("(),").partition(".")[0]
        for word in condition.split()
        if word.strip("(),").startswith("q") and "." in word
    }
