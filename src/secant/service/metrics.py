"""Counts for Prometheus: how many, how long, how much. No names, no texts, no values.

In: what happened, as words of fixed lists. Out: text in Prometheus' format.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper ends of the classes of the histogram of times."""


class Metrics:
    """What one process has counted since it began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._classes = [0] * (len(SECONDS) + 1)
        self._seconds = 0.0

    def count(self, name: str, label: str, value: str) -> None:
        """Count one: name of the metric, name and value of its label."""
        with self._lock:
            self._counts[name, label, value] += 1

    def took(self, seconds: float) -> None:
        """Note how long a question took from asking to answer."""
        index = next((i for i, end in enumerate(SECONDS) if seconds <= end), len(SECONDS))
        with self._lock:
            self._classes[index] += 1
            self._seconds += seconds

    def text(self, gauges: Mapping[str, float], spent: Mapping[str, float]) -> str:
        """Give everything as text."""
        with self._lock:
            counts, classes, seconds = dict(self._counts), list(self._classes), self._seconds
        lines: list[str] = []
        for name in sorted({name for name, _, _ in counts}):
            lines.append(f"# TYPE {name} counter")
            lines += [
                f'{name}{{{label}="{_quoted(value)}"}} {number}'
                for (metric, label, value), number in sorted(counts.items())
                if metric == name
            ]
        lines.append("# TYPE secant_question_seconds histogram")
        total = 0
        for end, number in zip((*SECONDS, "+Inf"), classes, strict=True):
            total += number
            lines.append(f'secant_question_seconds_bucket{{le="{end}"}} {total}')
        lines += [
            f"secant_question_seconds_sum {seconds:.6f}",
            f"secant_question_seconds_count {total}",
        ]
        for name, value in gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        if spent:
            lines.append("# TYPE secant_epsilon_spent gauge")
            lines += [
                f'secant_epsilon_spent{{protection="{_quoted(name)}"}} {value!r}'
                for name, value in spent.items()
            ]
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
