"""What the source itself carries from one place to another: triggers, rules, row policies, checks, foreign keys.

In: a policy and the catalog. Out: problems. A place is still where nothing is hidden of a value, although values
elsewhere are: all of a public table, and the columns of a table with a distance that no norm names. What can bring
something hidden into a still place stops everything, unless the owner accepts it by name: what a trigger computes, the
catalog cannot tell (I3). Generated columns are no ties: they are computed anew (`following`), and told of here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from secant.policy.coverage import is_protected
from secant.policy.following import (
    following,
    formulas_of,
    has_distance,
    moving,
    sources_of,
    withheld_of,
)
from secant.policy.policy import Policy
from secant.policy.problems import Problem, problem_at
from secant.records import frozen
from secant.schema.catalog import Catalog, Table, Tie

KINDS = ("trigger", "rule", "row policy", "check", "foreign key", "function")


def accepted_name(table: str, tie: Tie) -> str:
    """Give what an owner lists under `accept` to say that nothing hidden comes along a tie."""
    return f"{tie.kind} {table.lower()}.{tie.name}"


def tie_problems(policy: Policy, catalog: Catalog) -> Iterator[Problem]:
    """Say by which ties something hidden can come to where nothing is hidden, and which accepted ones are none."""
    places = _Protected(policy, catalog)
    accepted = {name.lower() for name in policy.accept}
    names = set()
    for name, table in catalog.tables.items():
        for tie in table.ties:
            called = accepted_name(name, tie)
            names.add(called.lower())
            reason = places.reason(name, table, tie)
            if reason and called.lower() not in accepted:
                message = f"{_tie_text(name, tie)} {reason}; {_way_out(called)}"
                yield problem_at(policy, "error", ("tables", name), message)
            elif not reason and tie.kind in ("trigger", "rule") and places.hidden(name):
                explanation = "what it writes elsewhere stays when a row is taken away"
                message = f"{_tie_text(name, tie)} runs on protected rows: {explanation}"
                yield problem_at(policy, "note", ("tables", name), message)
    for name in policy.accept:
        if name.lower().startswith(KINDS) and name.lower() not in names:
            message = f"the source has no {name}: take it out of accept"
            yield problem_at(policy, "error", ("accept",), message)


def following_problems(policy: Policy, catalog: Catalog) -> Iterator[Problem]:
    """Say which columns follow from others, and refuse those that something must be able to look up."""
    for name, table in catalog.tables.items():
        facts = policy.facts(name)
        looked_up = {*facts.key, *facts.references}
        for p in policy.protections:
            looked_up |= {p.unit[1]} if p.unit and p.unit[0] == name else set()
            looked_up |= {p.time[name]} if name in p.time else set()
            looked_up |= (
                {p.personal.column[1]} if p.personal and p.personal.column[0] == name else set()
            )
        for column in sorted(following(policy, table) & looked_up):
            here = ("tables", name, "derived" if column in facts.derived else "columns", column)
            message = "a column that tells rows or people apart is not computed"
            yield problem_at(policy, "error", here, message)
        for column in sorted(following(policy, table) & facts.columns.keys()):
            message = "what is declared of a column that follows from others is not used: declare it of those"
            yield problem_at(policy, "warning", ("tables", name, "columns", column), message)
        for column, reason in withheld_of(policy, table).items():
            here = ("tables", name, "columns", column)
            yield problem_at(policy, "warning", here, f"not offered: {reason}")
        for column in formulas_of(policy, table).keys() - facts.derived.keys():
            sources = ", ".join(sorted(sources_of(policy, table, column))) or "constants"
            message = f"the source computes it from {sources}: so does every question, and it moves as they do"
            yield problem_at(policy, "note", ("tables", name, "columns", column), message)


@frozen
class _Protected:
    """What is hidden and what is still under a policy."""

    policy: Policy
    catalog: Catalog

    def hidden(self, table: str) -> bool:
        return is_protected(table, self.policy, self.policy.protections)

    def still(self, table: str) -> frozenset[str]:
        """Give the columns of a table in which nothing that moves is expected."""
        stored = self.catalog.table(table)
        if stored is None or (self.hidden(table) and not has_distance(self.policy, table)):
            return frozenset()
        columns = {c.lower() for c, _ in (*stored.columns, *stored.parts)}
        return frozenset(columns - moving(self.policy, table) - following(self.policy, stored))

    def reason(self, name: str, table: Table, tie: Tie) -> str:
        """Say why a tie matters; "" if it does not."""
        if tie.kind == "check":
            return self._check(name, table, tie)
        if tie.kind == "foreign key":
            return self._foreign_key(name, tie)
        if tie.kind == "function":
            here = self.still(name).intersection(tie.columns)
            reason = (
                f"is filled by a function of the source's own into {tie.name}, which is not hidden"
            )
            return reason if here and self._anything_hidden() else ""
        if tie.kind == "row policy":
            return self._row_policy(name, tie)
        return self._writes(name, tie)

    def _reaches(self, name: str, tie: Tie, chosen: Callable[[str], object]) -> list[str]:
        # Behind a view, or a table that is not offered, may be any table.
        is_known = tie.reaches is not None and all(t in self.catalog.tables for t in tie.reaches)
        others = (tie.reaches or ()) if is_known else self.catalog.tables
        return sorted(other for other in others if other != name and chosen(other))

    def _anything_hidden(self) -> bool:
        return any(map(self.hidden, self.catalog.tables))

    def _check(self, name: str, table: Table, tie: Tie) -> str:
        columns = frozenset(tie.columns) or frozenset(c.lower() for c, _ in table.columns)
        still = sorted(columns & self.still(name))
        moves = sorted(columns & moving(self.policy, name))
        if still and moves:
            return f"ties {still[0]}, which is not hidden, to {moves[0]}, which is"
        if still and tie.reaches is None and self._anything_hidden():
            return f"ties {still[0]}, which is not hidden, to what a function of the source's own reads"
        return ""

    def _foreign_key(self, name: str, tie: Tie) -> str:
        moves = moving(self.policy, name)
        for column, (target, target_column) in zip(tie.columns, tie.targets, strict=True):
            if target_column in moving(self.policy, target) and column not in moves:
                return f"makes {column}, which is not hidden, a copy of {target}.{target_column}, which is"
        return ""

    def _row_policy(self, name: str, tie: Tie) -> str:
        reason = "decides which rows of the table are seen"
        if has_distance(self.policy, name):
            return f"{reason}, and may look at values that are hidden"
        elsewhere = self._reaches(name, tie, self.hidden)
        return f"{reason}, and may look at {elsewhere[0]}, which is protected" if elsewhere else ""

    def _writes(self, name: str, tie: Tie) -> str:
        """A trigger or a rule runs when rows of its table change, reads what it likes, and writes where it likes."""
        if self.hidden(name):
            if moving(self.policy, name) and (here := sorted(self.still(name))):
                return f"can write what is hidden into {here[0]}, which is not"
            open_ones = self._reaches(name, tie, self.still)
            return f"can write what is hidden into {open_ones[0]}" if open_ones else ""
        hidden = self._reaches(name, tie, self.hidden)
        return f"can write what is hidden in {hidden[0]} into the table" if hidden else ""


def _tie_text(table: str, tie: Tie) -> str:
    if tie.kind == "function":
        return f"{table}.{tie.name}"
    return f"the {tie.kind} {tie.name} of {table}"


def _way_out(called: str) -> str:
    return f'if nothing protected comes along it, add "{called}" to accept'
