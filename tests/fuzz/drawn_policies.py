"""Policies that an owner could write, most of them odd: drawn over the fuzzed schema, with what is asked of them.

In: a seed. Out: the text of a policy that is read without a mistake, what its neighbors differ in, and texts that lean
on declared facts. Ranges of one point, steps larger than the range, lists of one value, tables that should have one row
or 10^15 of them, epsilon from 1e-6 to 1e6: no declared fact may make anything fail.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from drawn_texts import LONG_COLUMN
from worlds import COLUMNS, Kind

from naming_public import naming_public

NUMBERS: dict[str, tuple[str, ...]] = {
    "person.age": ("0, 120", "40, 40", "0, 0", "-1, 0", "0, 2147483647", "-2147483648, 2147483647"),
    "person.height": ("0, 2.5", "1.75, 1.75", "0, 0", "-1e-38, 1e-38", "-1e38, 1e38", "0, 1e-30", "-0.0, 0.0"),
    "person.balance": ("-1000, 1000", "0, 0", "0.01, 0.01", "-9999999999.99, 9999999999.99", "-1e-9, 1e-9"),
    "visit.cost": ("0, 100", "7, 7", "0, 0", "-0.01, 0", "0, 99999999.99", "0.001, 0.002"),
    "visit.rate": ("0, 1", "1, 1", "0, 0", "-1e18, 1e18", "1e-12, 2e-12", "0.1, 0.1"),
    "visit.big": ("-1000, 1000", "3, 3", "0, 0", "-9223372036854775808, 9223372036854775807", "0, 1"),
    "visit.vid": ("1, 1", "0, 1000"),
    "visit.pid": ("1, 1", "0, 1000"),
    "person.id": ("1, 1", "0, 1000"),
    "place.x": ("-10, 10", "0, 0", "1, 1", "-1e9, 1e9", "-1e-9, 1e-9", "0, 1e38"),
    "place.y": ("-10, 10", "2, 2", "0, 1e-38"),
    "place.speed": ("0.5, 40", "1, 1", "1e-6, 1e6"),
    "city.people": ("0, 1000000", "5, 5", "0, 0"),
    "odd.id": ("0, 100", "1, 1"),
    "odd.double": ("-1, 1", "0, 0"),
    "odd.decimal": ("0, 5", "1.125, 1.125", "0.0001, 0.0002"),
    "odd.long": ("0, 9", "9, 9"),
}  # fmt: skip
STEPS = ("1", "0.5", "1000", "1e-6", "3", "0.1", "1e12", "7", "1e-30")
DAYS = ('"1900-01-01", "2030-01-01"', '"2024-01-01", "2024-01-01"', '"0001-01-01", "9999-12-31"')
WORDS: dict[str, tuple[str, ...]] = {
    "person.city": ('"Riga", "Oslo", "Nowhere"', '"Riga"', '""', '"nobody"'),
    "visit.note": ('"ok", "bad", ""', '"ok"', '""', '"%", "_", "\'"'),
    "place.kind": ('"a", "b"', '"a"', '"z"'),
    "person.age": ("1, 2, 3", "40"),
    "visit.big": ("0", "-1, 0, 1"),
    "visit.cost": ("0.5", "1, 2.5"),
}
ODD = "'Odd \"Täble'"
NAMES = {
    "odd.id": "id", "odd.double": "'a \"b'", "odd.decimal": '"straße"', "odd.long": LONG_COLUMN,
}  # fmt: skip
EPSILONS = ("1e-6", "0.001", "0.1", "1", "1", "3.7", "100", "1e4", "1e5", "1e6")
DELTAS = ("0", "1e-100", "1e-9", "0.001", "0.5", "0.999999")
ROWS = ("1", "2", "12", "1000000", "1000000000000000")
AMOUNTS = ("0.01", "1", "30", "1e6")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A policy, and how the neighbors under it differ."""

    text: str
    kind: Kind


class Policies:
    """Draws one policy after another from a seed, and texts that lean on what it declares."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def draw(self) -> Drawn:
        """Give the next policy."""
        kind = self.pick(
            [self._rows, self._rows, self._unit, self._unit, self._cells, self._cells, self._both]
        )()
        text = "\n".join([self._table(t) for t in ("person", "visit", "place", "city", "odd")])
        written = naming_public(kind.head + text + kind.protections, COLUMNS)
        return Drawn(written, kind)

    # ── declared facts ───────────────────────────────────────────────────────────────────────────

    def _table(self, table: str) -> str:
        name = ODD if table == "odd" else table
        lines = [f"[tables.{name}]"]
        keys = {"person": "id", "visit": "vid", "place": "id", "city": "name"}
        if table in keys and (table == "person" or self.chance(0.7)):
            lines.append(f'key = "{keys[table]}"')
        if table == "visit":
            lines.append('references = { pid = "person.id" }')
        if self.chance(0.4):
            lines.append(f"rows = {self.pick(ROWS)}")
        lines.append(f"[tables.{name}.columns]")
        places = [p for p in (*NUMBERS, *WORDS) if p.partition(".")[0] == table]
        for place in dict.fromkeys(places):
            facts = self._facts(place)
            if facts:
                lines.append(f"{NAMES.get(place, place.partition('.')[2])} = {{ {facts} }}")
        if table == "person" and self.chance(0.7):
            lines.append(f"born = {{ range = [{self.pick(DAYS)}]{self._days()} }}")
        if table == "visit" and self.chance(0.7):
            lines.append(f"day = {{ range = [{self.pick(DAYS)}]{self._days()} }}")
        return "\n".join(lines) + "\n"

    def _days(self) -> str:
        return self.pick(["", ', step = "1 day"', ', step = "1000 weeks"'])

    def _facts(self, place: str) -> str:
        if place in WORDS and (place not in NUMBERS or self.chance(0.2)):
            return f"values = [{self.pick(WORDS[place])}]" if self.chance(0.8) else ""
        if not self.chance(0.75):
            return f"total = {self.pick(ROWS)}" if self.chance(0.2) else ""
        found = f"range = [{self.pick(NUMBERS[place])}]"
        whole = place in ("person.age", "visit.big", "visit.vid", "visit.pid", "person.id", "city.people",
                          "odd.id", "odd.long")  # fmt: skip
        if self.chance(0.4):
            found += f", step = {self.pick([s for s in STEPS if s.isdigit()] if whole else STEPS)}"
        if self.chance(0.1):
            found += f", density = {self.pick(AMOUNTS)}"
        if self.chance(0.1):
            found += ', distribution = "uniform"'
        if self.chance(0.08):
            found += f", moves = {self.pick(AMOUNTS)}, center = {self.pick(['0', '7', '-1e90'])}"
        return found

    # ── protections ──────────────────────────────────────────────────────────────────────────────

    def _budget(self) -> str:
        epsilon = self.pick(("1000000", "1000000", "1000000", *EPSILONS))
        delta = self.pick(DELTAS)
        composition = self.pick([*['composition = "basic"\n'] * 4, "", 'composition = "tight"\n'])
        return f"epsilon = {epsilon}\ndelta = {delta}\n{composition}"

    def _rows(self) -> Kind:
        tables = f'["person", "visit", "place", {ODD}]'
        replaced = self.chance(0.3)
        text = f'[protections.single]\nkind = "rows"\ntables = {tables}\n{self._budget()}'
        return Kind(
            "drawn rows",
            text + ("replace = true\n" if replaced else ""),
            "replaced" if replaced else "row",
        )

    def _unit(self) -> Kind:
        text = f'[protections.people]\nkind = "unit"\nunit = "person.id"\n{self._budget()}'
        if self.chance(0.5):
            text += f'truncation = "{self.pick(["auto", "fixed", "chosen", "race"])}"\n'
        if self.chance(0.7):
            text += "[protections.people.limits]\n"
            text += (
                f"visit = {self.pick(['1', '5', '1000000000000000'])}\n" if self.chance(0.8) else ""
            )
            text += (
                f"groups = {self.pick(['1', '2', '1000000000000000'])}\n"
                if self.chance(0.4)
                else ""
            )
        return Kind("drawn unit", text, "unit")

    def _cells(self) -> Kind:
        both = self.chance(0.3)
        norm = self.pick([
            "l1(l2(x, y), 2*speed)", "linf(x, speed)", "l2(0.001*x, 1000*speed)", "l1(1e-9*x, y, speed)",
            "l1(x, 1e9*speed)",
        ])  # fmt: skip
        text = f'[protections.positions]\nkind = "{"rows+cells" if both else "cells"}"\n{self._budget()}'
        text += f'distance = {{ place = "{norm}" }}\n'
        if both:
            text += f"add_remove = {{ place = {self.pick(AMOUNTS)} }}\n"
        if self.chance(0.4):
            shape = self.pick(['kind = "ramp", width = {}', 'kind = "sigmoid", slope = {}'])
            text += (
                f"softening = {{ {shape.format(self.pick(['0.5', '1e-9', '1e9', '1e-100']))} }}\n"
            )
        if self.chance(0.3):
            text += f"beta = {self.pick(['0.1', '1e-9', '1000'])}\n"
        return Kind("drawn cells", text, "moved")

    def _both(self) -> Kind:
        one, other = self._unit(), self._cells()
        return Kind("drawn unit and cells", one.protections + other.protections, "unit")

    # ── what leans on declared facts ─────────────────────────────────────────────────────────────

    def text(self) -> str:
        """Give a question whose bound, noise, error or warning is made of what the policy declares."""
        table = self.pick(["person", "visit", "visit", "place", "place"])
        columns = {"person": ("age", "height", "balance"), "visit": ("cost", "rate", "big"),
                   "place": ("x", "y", "speed")}[table]  # fmt: skip
        words = {"person": "city", "visit": "note", "place": "kind"}[table]
        a, b = self.pick(columns), self.pick(columns)
        number = self.pick(["0", "1", "-3", "40", "0.5", "1e18", "7"])
        measure = self.pick([
            "count(*)", f"count({a})", f"count(DISTINCT {a})", f"sum({a})", f"sum({a} * {b})", f"avg({a})",
            f"sum({a} - {number})", f"min({a})", f"max({a})", f"median({a})", f"var_pop({a})", f"stddev_samp({a})",
            f"sum(abs({a}))", f"avg({a} / 2.0)", f"sum({a}), count(*)", f"avg({a}), avg({b})", f"sum(0 * {a})",
            f"quantile_cont({a}, 0.25)", f"sum(CASE WHEN {b} > {number} THEN {a} ELSE 0 END)", f"covar_pop({a}, {b})",
            f"corr({a}, {b})", f"sum(sqrt(abs({a})))", f"sum({a}) / sum({b})",
            f"avg({a} * (SELECT max(people) FROM city))",
            f"count(*) * 1.0 / (SELECT count(*) FROM {table})", f"sum(ln(1 + abs({a})))", f"sum(exp({a}))",
        ])  # fmt: skip
        test = self.pick([
            f"{a} > {number}", f"{a} = {number}", f"{a} BETWEEN {number} AND 50",
            f"NOT ({words} <> 'a' OR {words} LIKE '%q%')",
            f"{words} = 'ok' AND {a} < {b}", f"{a} IN (1, 2, 3)", f"NOT ({a} < {number} OR {a} >= {number})",
            f"{a} > (SELECT max(people) FROM city)", f"{words} IN ('a', 'ok', 'Riga')", f"{a} <> {number}",
            f"NOT ({words} IN ('a', 'b', 'c', 'd'))", f"abs({a} - {b}) < {number}", f"{words} IS NULL",
            f"NOT {words} LIKE 'R%'",
            f"{a} > {number} OR {b} > {number}", f"({a} + {b}) * 2 > {number}",
        ])  # fmt: skip
        key = self.pick([words, a, f"{words}, {a}", f"floor({a} / 10)", f"CUBE ({words})", f"ROLLUP ({words}, {a})",
                         f"GROUPING SETS (({words}), ())", f"width_bucket({a}, 0, 10, 5)"])  # fmt: skip
        where = f" WHERE {test}" if self.chance(0.6) else ""
        shape = self.random.random()
        if shape < 0.45:
            return f"SELECT {measure} FROM {table}{where}"
        if shape < 0.7:
            shown = f"{words}, " if words in key else ""
            return f"SELECT {shown}{measure} FROM {table}{where} GROUP BY {key}"
        if shape < 0.9:
            return self._joined(where)
        return (
            f"SELECT count(*), avg(s) FROM (SELECT {words}, sum({a}) AS s FROM {table}{where} GROUP BY {words}) q "
            f"WHERE s > {number}"
        )

    def _joined(self, where: str) -> str:
        pairs = self.pick([
            ("person p JOIN visit v ON p.id = v.pid", "p.city", "v.cost"),
            ("visit v JOIN visit w ON v.pid = w.pid", "v.note", "w.rate"),
            ("visit v JOIN visit w ON v.note = w.note AND v.vid < w.vid", "v.note", "w.rate"),
            ("person p JOIN city c ON p.city = c.name", "c.country", "p.age"),
            ("person p LEFT JOIN visit v ON p.id = v.pid", "p.city", "v.big"),
            ("place a JOIN place b ON a.kind = b.kind", "a.kind", "a.x"),
            ("place a JOIN place b ON a.id = b.id", "a.kind", "b.speed"),
        ])  # fmt: skip
        tables, word, value = pairs
        measure = self.pick(
            [
                "count(*)",
                f"sum({value})",
                f"avg({value})",
                f"count(DISTINCT {word})",
                f"max({value})",
            ]
        )
        test = self.pick(
            [
                "",
                f" WHERE {value} > 1",
                f" WHERE {word} = 'a'",
                f" WHERE NOT ({word} <> 'a' OR {value} < 1)",
            ]
        )
        group = f" GROUP BY {self.pick([word, f'CUBE ({word})'])}" if self.chance(0.3) else ""
        return f"SELECT {measure} FROM {tables}{test}{group}"
