"""Each step of a derivation against what its rule may claim, and each bound of a certificate against its step.

In: a certificate with its steps and the plans that the engine was given. Out: nothing, or Wrong, or NotKnown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from secant.verifier.centers import check_centered
from secant.verifier.limits import check_cut, most_in_group
from secant.verifier.measures import (
    change_of_measure,
    counts_units,
    groups_of_unit,
    row_by_row,
    squared_length,
)
from secant.verifier.plans import Node, NotKnown, Wrong, tables, unsorted
from secant.verifier.rows import Setting
from secant.verifier.surveys import RULES as SURVEYED
from secant.verifier.surveys import check_survey
from secant.verifier.weighed import check_weights

DRAWN = ("stability.rank", "stability.mode")
"""Rules of statistics that are drawn from counted cells."""
OPERATORS = {
    "stability.scan": {"Scan"},
    "stability.public": {"Values", "Released"},
    "stability.filter": {"Filter"},
    "stability.project": {"Project"},
    "stability.distinct": {"Distinct"},
    "stability.group": {"Aggregate"},
    "stability.join": {"Join"},
    "stability.set": {"Union", "Intersect", "Except"},
    "stability.truncate": {"Truncate"},
    "stability.truncate_groups": {"TruncateGroups"},
    "stability.limit": {"Limit"},
    "stability.window": {"Window"},
}
"""Rule -> the operators that it speaks of. What is in none of these tables is not known here."""
MEASURES = {
    "stability.count": ("count", None),
    "stability.sum": ("sum", False),
    "stability.count_distinct": ("count", True),
    "stability.sum_distinct": ("sum", True),
    "stability.count_units": ("count", True),
}
"""Rule -> function, and whether it is of different values."""
LIMITS = (
    "truncation.clip", "truncation.distinct", "truncation.matching", "truncation.race", "truncation.center",
    "truncation.weights",
)  # fmt: skip
KEYS = "truncation.keys"
"""The rule of weights by which keys are chosen."""


@dataclass(slots=True)
class Derivation:
    """One certificate of one release, while it is checked."""

    release: dict[str, Any]
    certificate: dict[str, Any]
    steps: list[dict[str, Any]]
    nodes: tuple[Any, ...]
    setting: Setting
    covered: frozenset[str]
    """The tables of the protection."""
    replace: bool
    done: dict[int, tuple[Node | None, int | None]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Statements that some measure is read from."""

    @property
    def statements(self) -> dict[str, Node]:
        """Give what the engine was asked."""
        return {name: Node(self.nodes, at) for name, at in self.release["statements"].items()}

    @property
    def listed(self) -> list[int | None]:
        """Give for each source of keys how many combinations it lists."""
        return [d["count"] if d["kind"] == "listed" else None for d in self.release["keys"]]

    @property
    def weighed(self) -> str | None:
        """Give the column of the weights by which keys are chosen; None where it is another number."""
        choice = self.release["choice"]
        weighed = None if choice is None else choice.get("weighed")
        return None if weighed is None else str(weighed["column"])

    def check(self) -> list[str]:
        """Check everything; give the rules that were used."""
        self._speak_of_one_table()
        roots = [int(at) for at in self.certificate["derivation"]]
        names = [*self.release["measures"], *self.release["ranked"]]
        weighed = self.weighed
        if set(self.certificate["bounds"]) != {*names, *([weighed] if weighed else [])}:
            raise Wrong("a measure has no bound, or a bound has no measure")
        if [self.steps[at]["rule"] for at in roots] == ["stability.public"] and self.steps[
            roots[0]
        ]["node"] is None:
            self._check_public()
            return ["stability.public"]
        for column in names:
            self._check_measure(column, roots)
        if weighed:
            self.used.add(self.release["choice"]["weighed"]["statement"])
        for at in roots:  # also what nothing rests on was claimed
            for premise in self.steps[at]["premises"]:
                if self.steps[premise]["rule"] not in SURVEYED:
                    self.step(premise)
        unused = set(self.statements) - self.used
        if unused:
            raise NotKnown(
                f"what the engine is asked beside the measures: {', '.join(sorted(unused))}"
            )
        return sorted({self.steps[at]["rule"] for at in self._reachable(roots)})

    def _reachable(self, roots: list[int]) -> set[int]:
        reachable: set[int] = set()
        stack = list(roots)
        while stack:
            at = stack.pop()
            if at not in reachable:
                reachable.add(at)
                stack += self.steps[at]["premises"]
        return reachable

    def _check_public(self) -> None:
        for node in self.statements.values():
            if tables(node) & self.covered:
                raise Wrong("a table of the protection is read, and no step speaks of it")
        if any(Fraction(b.get("value", "1")) for b in self.certificate["bounds"].values()):
            raise NotKnown("a bound that is not zero where nothing is read")

    def _speak_of_one_table(self) -> None:
        """Under `rows`, steps speak of the table that matters most; all are counted once more for each measure."""
        if self.setting.owners is not None:
            return
        used = self._reachable([int(at) for at in self.certificate["derivation"]])
        scans = [self.steps[at] for at in used if self.steps[at]["rule"] == "stability.scan"]
        spoken = {
            str(Node(self.nodes, s["node"]).held("table")).lower()
            for s in scans
            if s["bound"] == "1"
        }
        self.setting = replace(self.setting, varying=frozenset(spoken & self.setting.varying))

    # ── steps ────────────────────────────────────────────────────────────────────────────────────

    def step(self, at: int) -> tuple[Node | None, int | None]:
        """Check a step and all that it rests on; give what it speaks of and how many rows differ there."""
        if at not in self.done:
            self.done[at] = self._step(at)
        return self.done[at]

    def _step(self, at: int) -> tuple[Node | None, int | None]:
        step = self.steps[at]
        rule = step["rule"]
        if any(p >= at for p in step["premises"]):
            raise Wrong(f"step {at + 1} ({rule}) rests on what comes after it")
        premises = [self.step(p) for p in step["premises"]]
        claimed = None if step["bound"] is None else int(Fraction(step["bound"]))
        if step["node"] is None:
            raise NotKnown(f"{rule} has no rule here")
        node = unsorted(Node(self.nodes, step["node"]))
        if rule in ("stability.owned", "stability.replace"):
            if len(premises) != 1 or premises[0][0] != node:
                raise Wrong(
                    f"step {at + 1} ({rule}) does not rest on the relation that it speaks of"
                )
            if rule == "stability.owned":
                least = self.setting.at_most(node)
                if least is None:
                    raise NotKnown("how many rows a unit has is not known here")
            else:
                inner = premises[0][1]
                least = None if inner is None else 2 * inner
        elif rule in OPERATORS:
            if node.kind not in OPERATORS[rule]:
                raise Wrong(f"step {at + 1} ({rule}) speaks of {node.kind}")
            if [p for p, _ in premises] != node.inputs:
                raise Wrong(f"step {at + 1} ({rule}) lacks a step for what it is made from")
            least = self.setting.differ(node, [bound for _, bound in premises])
        else:
            raise NotKnown(f"{rule} has no rule here")
        if claimed is not None and (least is None or claimed < least):
            raise Wrong(
                f"step {at + 1} ({rule}) claims that {claimed} rows differ; it follows that {least} may"
            )
        return node, claimed

    # ── measures ─────────────────────────────────────────────────────────────────────────────────

    def _check_measure(self, column: str, roots: list[int]) -> None:
        bound = self.certificate["bounds"][column]
        if bound["kind"] == "surveyed":
            self._check_surveyed(column, bound)
            return
        if bound["kind"] not in ("global", "limits"):
            raise NotKnown(f"bounds that the data decide ({bound['kind']}) are not checked here")
        steps = [
            at
            for at in roots
            if self.steps[at]["node"] is not None and self._speaks_of(self.steps[at], column)
        ]
        matching = [
            at for at in steps if (self.steps[at]["rule"] in LIMITS) == (bound["kind"] == "limits")
        ]
        if not matching:
            if any(self.steps[at]["node"] is None for at in roots):
                raise NotKnown("a step does not say what of the plan it speaks of")
            others = {self.steps[at]["rule"] for at in roots} - {
                KEYS,
                *MEASURES,
                *LIMITS,
                *DRAWN,
            }
            if others:
                raise NotKnown(f"{', '.join(sorted(others))} has no rule here")
            raise Wrong(f"no step gives the bound of {column}")
        at = matching[0]
        if bound["kind"] == "limits":
            self._check_limits(column, bound, at)
            return
        claimed = Fraction(self.steps[at]["bound"])
        if claimed > Fraction(bound["value"]):
            raise Wrong(f"the bound of {column} is {bound['value']}, its step says {claimed}")
        least = self._least(column, at)
        if claimed < least:
            if self.replace and not row_by_row(self._statement(column)[0].one("input")):
                raise NotKnown(f"whether as much comes as goes of {column} is not known here")
            raise Wrong(
                f"step {at + 1} claims that {column} moves by {claimed}; it follows that it may by {least}"
            )

    def _check_surveyed(self, column: str, bound: dict[str, Any]) -> None:
        used = self._reachable([int(at) for at in self.certificate["derivation"]])
        others = {self.steps[at]["rule"] for at in used} - SURVEYED
        if others or self.replace or self.setting.owners is not None:
            raise NotKnown(
                f"surveys by {', '.join(sorted(others)) or 'such rows'} have no rule here"
            )
        together = {survey.get("answered") for survey in bound["surveys"]} - {None}
        if together & set(self.release["statements"].values()):
            raise NotKnown("measures that are read off what a survey counts have no rule here")
        aggregate, call = self._statement(column)
        step = Fraction(self.release["measures"][column]["step"])
        arguments = (aggregate, call, bound, self.nodes, step, self.covered, self.listed)
        places = check_survey(*arguments)
        self.used |= {name for name, at in self.release["statements"].items() if at in places}

    def _speaks_of(self, step: dict[str, Any], column: str) -> bool:
        node = Node(self.nodes, step["node"])
        if column in self.release["ranked"] and step["rule"] == "truncation.weights":
            counted = self.release["ranked"][column]["counted"]
            return node.kind == "Aggregation" and node.held("name") == counted
        if column in self.release["ranked"]:
            return step["rule"] in DRAWN and node == self.statements.get(
                self.release["ranked"][column]["cells"]
            )
        return node.kind == "Aggregation" and node.held("name") == column

    def _least(self, column: str, at: int) -> Fraction:
        """Give how far a measure can move by the rules, from the rows that its step rests on."""
        entry = self.steps[at]
        rule = entry["rule"]
        if column in self.release["ranked"]:
            aggregate = Node(self.nodes, entry["node"])
            self.used.add(self.release["ranked"][column]["cells"])
            fraction = self.release["ranked"][column]["fraction"]
            if (rule == "stability.mode") != (fraction is None):
                raise Wrong(f"step {at + 1} ({rule}) speaks of another statistic than {column}")
            (call,) = aggregate.several("aggregations")
            if call.held("function") != "count" or call.maybe("argument") is not None:
                raise NotKnown("cells that are not numbers of rows")
            return self.span(column) * self._rows(entry, aggregate)
        aggregate, call = self._statement(column)
        if call.at != entry["node"]:
            raise Wrong(f"step {at + 1} speaks of another measure than the statement of {column}")
        if rule not in MEASURES:
            raise NotKnown(f"{rule} has no rule here")
        function, distinct = MEASURES[rule]
        if call.held("function") != function or distinct not in (None, call.held("distinct")):
            raise Wrong(f"step {at + 1} ({rule}) speaks of {call.held('function')}")
        units = counts_units(self.setting, aggregate, call)
        if rule == "stability.count_units" and not units:
            raise NotKnown("whether units are counted is not known here")
        rows = None if units and not entry["premises"] else self._rows(entry, aggregate)
        step = Fraction(self.release["measures"][column]["step"])
        return change_of_measure(
            self.setting, aggregate, call, rows, step, self.listed, replaced=self.replace
        )

    def _rows(self, step: dict[str, Any], aggregate: Node) -> int:
        """Give how many rows of an aggregate's input differ, by the one step that it rests on, for every table."""
        if len(step["premises"]) != 1:
            raise Wrong(
                f"{step['rule']} rests on one step about its rows, and has {len(step['premises'])}"
            )
        node, rows = self.step(step["premises"][0])
        if node != unsorted(aggregate.one("input")):
            raise Wrong(f"{step['rule']} rests on a step about other rows than its own")
        if rows is None:
            raise Wrong(f"{step['rule']} rests on rows without a bound")
        self._check_every_table(aggregate, rows)
        return rows

    def _check_every_table(self, aggregate: Node, rows: int) -> None:
        """Under `rows`, count for each table once more how many rows differ; a replaced row goes, and one comes."""
        if self.setting.owners is not None:
            return
        for table in sorted(tables(aggregate) & self.covered):
            setting = replace(self.setting, varying=frozenset((table,)))
            count = setting.count(aggregate.one("input"))
            if count is None or count * (2 if self.replace else 1) > rows:
                raise Wrong(
                    f"{rows} rows are claimed to differ; of {table} alone {count} may come or go"
                )

    def _differ(self, rows: Node) -> int | None:
        """Count rows of a unit that differ, by the operators or by how the relation is made."""
        counts = [self.setting.count(rows)]
        if self.setting.local(rows):
            counts.append(self.setting.at_most(rows))
        return min((x for x in counts if x is not None), default=None)

    def _statement(self, column: str) -> tuple[Node, Node]:
        """Give the statement that computes a measure, and its call."""
        for name, node in self.statements.items():
            if node.kind == "Aggregate":
                for call in node.several("aggregations"):
                    if call.held("name") == column:
                        self.used.add(name)
                        return node, call
        raise Wrong(f"no statement computes {column}")

    def _check_limits(self, column: str, bound: dict[str, Any], at: int) -> None:
        limits = [int(x) for x in bound["limits"]]
        if limits != sorted(set(limits)) or limits[0] < 1:
            raise Wrong(f"the limits of {column} are out of order")
        if (self.steps[at]["rule"] == "truncation.race") != bool(bound["race"]):
            raise Wrong(f"step {at + 1} ({self.steps[at]['rule']}) gives the limits of {column}")
        if (self.steps[at]["rule"] == "truncation.matching") != bool(bound.get("assigned")):
            raise Wrong(f"step {at + 1} ({self.steps[at]['rule']}) gives the limits of {column}")
        statements = {**self.statements, **self._variants()}
        if column in self.release["ranked"]:
            self._check_weights(column, bound, at, statements)
            return
        centered = bool(bound.get("centered"))
        if (self.steps[at]["rule"] == "truncation.center") != centered:
            raise Wrong(f"step {at + 1} ({self.steps[at]['rule']}) gives the limits of {column}")
        if centered:
            self.used |= check_centered(self.setting, statements, column, bound)
            return
        step = Fraction(self.release["measures"][column]["step"])
        self.used |= check_cut(self.setting, statements, column, bound, step)

    def _check_weights(
        self, column: str, bound: dict[str, Any], at: int, statements: dict[str, Node]
    ) -> None:
        """Check that cells add up what rows weigh, and that nobody's rows weigh more than a limit."""
        ranked = self.release["ranked"][column]
        call = Node(self.nodes, self.steps[at]["node"])
        counts = call.held("function") == "count" and call.maybe("argument") is None
        if self.steps[at]["rule"] != "truncation.weights" or not counts:
            raise Wrong(f"step {at + 1} gives weights that are no numbers of rows")
        if bound["race"] or ranked["noise"]["kind"] != "choice":
            raise NotKnown(f"what is drawn from the weights of {column} is not known here")
        self.used |= check_cut(self.setting, statements, ranked["counted"], bound, Fraction(1))
        if ranked["cells"] not in self.used:
            raise Wrong(f"{column} is drawn from cells whose weights nothing limits")

    def span(self, column: str) -> Fraction:
        """Give how far apart one row can move the scores of two points; 1 for what is no order statistic."""
        if column not in self.release["ranked"]:
            return Fraction(1)
        fraction = self.release["ranked"][column]["fraction"]
        return Fraction(1) if fraction is None else _span(Fraction(fraction))

    def _variants(self) -> dict[str, Node]:
        return {name: Node(self.nodes, at) for name, at in self.release["variants"].items()}

    def squared(self, column: str) -> Fraction | None:
        """Give the squared length of a measure's move that a certificate claims, checked; None if it claims none."""
        bound = self.certificate["bounds"][column]
        if bound["kind"] == "limits" and bound["within"] is not None:
            most = Fraction(bound["limits"][-1])
            squared, size = most * min(most, Fraction(bound["within"])), most
        elif column in self.certificate["squares"]:
            squared, size = Fraction(self.certificate["squares"][column]), Fraction(bound["value"])
        else:
            return None
        if squared >= size**2:
            return size**2
        aggregate, call = self._statement(column)
        step = Fraction(self.release["measures"][column]["step"])
        rows, groups = int(self.certificate["rows"]), int(self.certificate["groups"])
        if bound["kind"] == "limits":
            least: Fraction | None = size * most_in_group(self.setting, aggregate, call, step)
        else:
            least = squared_length(
                self.setting, aggregate, call, step, rows, groups, replaced=self.replace
            )
        if least is None or squared < least:
            raise NotKnown(f"why the move of {column} is shorter than its size is not known here")
        return squared

    # ── groups ───────────────────────────────────────────────────────────────────────────────────

    def check_choice(self) -> None:
        """Check how many groups one unit or row reaches, and what it adds to the number that chooses keys."""
        if self.weighed:
            self.keys_of_unit()
            return
        selector = self.release["choice"]["selector"]
        aggregate, call = self._statement(selector)
        if any(d["kind"] not in ("listed", "chosen", "looked up") for d in self.release["keys"]):
            raise NotKnown("keys that are shown as found are not checked here")
        rows = int(self.certificate["rows"])
        self._check_every_table(aggregate, rows)
        count = rows if self.setting.owners is None else self._differ(aggregate.one("input"))
        if count is None:
            raise NotKnown("how many rows choose the keys is not known here")
        if count > rows:
            raise Wrong(f"{rows} rows are claimed to differ where keys are chosen; {count} may")
        groups = groups_of_unit(self.setting, aggregate, rows, [None])
        if groups > int(self.certificate["groups"]):
            raise Wrong(
                f"one unit is claimed to reach {self.certificate['groups']} groups; {groups} may"
            )
        most = 1 if counts_units(self.setting, aggregate, call) else rows
        if self.replace and most > 1:
            if not row_by_row(aggregate.one("input")):
                raise NotKnown("what a replaced row adds to one group is not known here")
            most = rows // 2
        if most > int(self.certificate["contribution"]):
            raise Wrong("what one unit adds to the number that chooses keys is more than claimed")

    def keys_of_unit(self) -> int:
        """Check the statement that weighs units; give how many keys one unit weighs in at most."""
        column = self.weighed
        assert column is not None, "keys are chosen by weights"
        statement = self.statements[self.release["choice"]["weighed"]["statement"]]
        return check_weights(self.setting, statement, column, self.certificate)


def _span(fraction: Fraction) -> Fraction:
    """Give how far apart one row can move the rank distances of two points."""
    return Fraction(1) if fraction in (0, 1) else 2 * max(fraction, 1 - fraction)
