"""How many rows can differ: ask for one, two, three, ... until the solver says that there are no more.

In: an encoder and a relation. Out: a Verdict: a number that is proved, or why there is none. Never here: a guess.
If the solver does not answer within its steps, or in time, there is no bound. Steps run out first, so that the same
question gets the same answer also on a busy machine: what was explained is what is answered.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from secant.plan import nodes as n
from secant.records import frozen
from secant.sensitivity.smt.language import Expression, shown
from secant.sensitivity.smt.marks import apart, no_later
from secant.sensitivity.smt.rules import Encoder, Item, Row

LONGEST = 2**31 - 1
"""Milliseconds that the solver can be told to think, at most."""
STEPS = 1_000_000
"""Steps of the solver for one answer, at most: unlike a time, they do not hang on what else the machine does."""
SHOWN = 3
"""Rows that differ in a witness, at most."""


@frozen
class Verdict:
    """What a search came to."""

    state: str
    """`bounded`, `large` (more rows can differ than were asked for) or `unknown`."""
    rows: int = 0
    """The bound; or so many rows can differ."""
    used: frozenset[str] = frozenset()
    """Labels of the keys that the proof uses."""
    witness: str = ""
    """Rows that the solver made up, where more can differ."""


@dataclass
class Search:
    """A growing set of different occurrences that all differ between the two databases."""

    encoder: Encoder
    relation: n.Relation
    items: list[Item] = field(default_factory=list)
    facts: list[Expression] = field(default_factory=list)

    def grow(self) -> list[Expression]:
        """Ask for one more; give what is new."""
        language = self.encoder.language
        item = self.encoder.item(self.relation)
        new = [*item.guard, item.differs]
        new += [apart(language, item.mark, other.mark) for other in self.items]
        if self.items:
            new.append(no_later(language, self.items[-1].order, item.order))
        self.items.append(item)
        self.facts += new
        return new


def solver_of(encoder: Encoder) -> Any:
    """Give a solver in the encoder's context."""
    return encoder.language.z3.Solver(ctx=encoder.language.context)


def ask(encoder: Encoder, solver: Any, labels: Iterable[str], deadline: float) -> bool | None:
    """Let the solver answer in the time that is left; give True, False or None for unknown."""
    left = int(min((deadline - time.monotonic()) * 1000, LONGEST))
    steps = min(STEPS, encoder.allowance.steps)
    if left <= 0 or steps <= 0:
        return None
    solver.set("timeout", left)
    solver.set("rlimit", steps)
    z3 = encoder.language.z3
    try:
        outcome = solver.check(*(encoder.language.named_flag(x) for x in sorted(labels)))
    except z3.Z3Exception:  # out of memory: as good as out of time
        return None
    finally:
        _count(encoder, solver)
    return True if outcome == z3.sat else False if outcome == z3.unsat else None


def _count(encoder: Encoder, solver: Any) -> None:
    """Take the steps of an answer from what the release is allowed; a context counts all of its answers."""
    statistics = solver.statistics()
    solved = statistics.get_key_value("rlimit count") if "rlimit count" in statistics.keys() else 0  # noqa: SIM118
    encoder.allowance.solves(max(0, solved - encoder.solved))
    encoder.solved = max(encoder.solved, solved)


def search(
    encoder: Encoder, relation: n.Relation, labels: frozenset[str], most: int, deadline: float
) -> Verdict:
    """Find the least number of rows that cannot differ (smt.rows)."""
    state = Search(encoder, relation)
    solver = solver_of(encoder)
    witness = ""
    for rows in range(1, most + 2):
        if not encoder.allowance.writes(relation, rows - 1):
            return Verdict("unknown", rows - 1, witness=witness)
        solver.add(*state.grow())
        answer = ask(encoder, solver, labels, deadline)
        if answer is None:
            return Verdict("unknown", rows - 1, witness=witness)
        if not answer:
            core = {str(flag) for flag in solver.unsat_core()}
            used = frozenset(x for x in labels if str(encoder.language.named_flag(x)) in core)
            return Verdict("bounded", rows - 1, used)
        witness = described(encoder, relation, solver.model(), state.items)
    return Verdict("large", most + 1, witness=witness)


def described(encoder: Encoder, relation: n.Relation, model: Any, items: Sequence[Item]) -> str:
    """Write the rows of a model: only what the query reads, and only the first few."""
    read = {c.name for c in n.walk(relation) if isinstance(c, (n.Column, n.Outer))}
    texts = {number: text for text, number in encoder.language.texts.items()}
    numbers: dict[tuple[str, str], int] = {}

    def found(term: Expression) -> Any:
        return model.eval(term, model_completion=True)

    def written(row: Row) -> str:
        name = (row.table, str(found(row.row)))
        number = numbers.setdefault(name, sum(table == row.table for table, _ in numbers) + 1)
        cells = {
            name[len(row.alias) + 1 :]: "NULL"
            if str(found(value.null)) == "True"
            else shown(value.kind, found(value.term), texts)
            for name, value in row.columns.items()
            if name in read
        }
        text = ", ".join(f"{name}={value}" for name, value in cells.items())
        return f"{row.table} {number} ({text})"

    lines = [
        " with ".join(written(row) for row in item.rows if str(found(row.present)) == "True")
        for item in items[:SHOWN]
    ]
    return "; ".join(lines) + ("; ..." if len(items) > SHOWN else "")
