"""Which tests go to which worker of a parallel run, and which first.

In: names of tests. Out: units of work, the longest first. A unit is a file: what its fixtures make and its caches keep
is then made once, not in every worker. Tests on Spark are one unit, wherever they stand: a server takes more memory
than all the rest.

Never here: xdist's own `loadgroup`. It writes groups to where pytest 9 no longer reads them, and then says nothing.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

SPARK = "spark"
_ON_SPARK = re.compile(r"\[spark[-\]]|/test_spark_(server|drivers)\.py")
FIRST = (
    SPARK,
    "tests/fuzz/test_past_faults.py",
    "tests/backends/test_tpch.py",
    "tests/backends/test_small_corpus.py",
    "tests/regress/test_answers_of_other_questions.py",
    "tests/browser/test_console.py",
    "tests/soundness/test_engine_agrees.py",
    "tests/statistical/test_release_audits.py",
    "tests/clients/test_bad_clients.py",
    "tests/backends/test_hostile_rows.py",
    "tests/unit/release/test_later_stages.py",
    "tests/soundness/test_derivative_directed.py",
    "tests/soundness/test_slot_search.py",
    "tests/statistical/test_sampler_audit.py",
    "tests/soundness/test_every_slot.py",
)
"""Units that take longest, longest first: one that starts last leaves the other workers idle. All others come after."""


def unit_of(nodeid: str) -> str:
    """Give the unit that a test belongs to."""
    return SPARK if _ON_SPARK.search(nodeid) else nodeid.split("::", 1)[0]


def place_of(nodeid: str) -> int:
    """Say where in the queue the unit of a test stands."""
    unit = unit_of(nodeid)
    return FIRST.index(unit) if unit in FIRST else len(FIRST)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole units, in the order in which they were collected."""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return ByUnit(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let workers collect the longest units first, and see that no test on Spark is left out of its unit."""
    for item in items:
        if item.get_closest_marker(SPARK) is not None and unit_of(item.nodeid) != SPARK:
            raise pytest.UsageError(f"{item.nodeid} is on Spark, which its name does not tell")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: place_of(item.nodeid))
