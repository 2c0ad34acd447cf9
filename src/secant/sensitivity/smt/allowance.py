"""How much work a solver may make of one release: what is written for it, and the steps that it takes.

In: sizes and steps. Out: whether there is any left. Where there is not, no bound is found here, and the next analysis
is asked: what is counted is public, so that the same question gets the same answer on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from secant.plan import nodes as n
from secant.runtime.work import spend

MOST_PARTS = 12_000
MOST_SOLVED = 4_000_000
_STEPS_A_PART = 25
_SOLVED_A_STEP = 16
"""What a written part, and so many steps of the solver, count as steps of planning: at least half their time."""


@dataclass
class Allowance:
    """What is left of the work for one release: searches for it share it, and end without a bound where it ends."""

    parts: int = MOST_PARTS
    """Parts of the plan that may be written as formulas, each once for every row that is compared with it."""
    steps: int = MOST_SOLVED
    """Steps of the solver."""

    def writes(self, relation: n.Relation, compared: int) -> bool:
        """Take what one more row costs that is compared with others; say whether that was left."""
        parts = n.written_size(relation) * (1 + compared)
        self.parts -= parts
        if self.parts < 0:
            return False
        spend(_STEPS_A_PART * parts)
        return True

    def solves(self, steps: int) -> None:
        """Take what the solver needed."""
        self.steps -= steps
        spend(steps // _SOLVED_A_STEP)
