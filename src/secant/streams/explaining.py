"""What a person is told of a stream before it costs anything: bounds, ways that were compared, errors.

In: a compiled stream. Out: text and plain values. Public facts only.
"""

from __future__ import annotations

from typing import Any

from secant.engines.dialect import Dialect
from secant.engines.print.print_sql import lower
from secant.ledger.amounts import Charge
from secant.release.report import Explanation
from secant.sensitivity import explain as wording
from secant.streams.compiling import Compiled, choices, costs
from secant.streams.reading import statement
from secant.streams.releasing import Opened, protection_text


def explain_stream(opened: Opened) -> Explanation:
    """Say what a stream costs, what bounds it, and how ways to release it compare."""
    compiled = opened.compiled
    record = _record(compiled)
    lines = [f"Stream {compiled.stream.name}: {_description(compiled)}", ""]
    for entry in record["guarantee"]:
        lines.append(
            f"Guarantee  {entry['protects']}: epsilon {entry['epsilon']:g}, delta {entry['delta']:g}, paid once"
        )
    if compiled.stretches is not None:
        lines.append(f"Stretches  {_stretch_text(compiled)}")
    if any(p.distance for p in compiled.protections):
        coming = any(p.kind == "rows+cells" for p in compiled.protections)
        rows = (
            "a row that comes or goes is as far off as `add_remove` says, and numbers of rows get noise (stream.both)"
            if coming
            else "rows and their times are public (stream.values)"
        )
        lines.append(
            f"Values     noise is for the most that a unit of distance moves all numbers of a level; {rows}"
        )
    for measure in record["measures"]:
        lines += ["", f"Ways to release the {measure['measure']} (errors are standard errors)"]
        width = max(len(f"{c['way']} {c['law']}") for c in measure["compared"])
        for c in measure["compared"]:
            mark = "*" if c["chosen"] else " "
            name = f"{c['way']} {c['law']}"
            lines.append(
                f" {mark} {name:{width}}  mean {c['mean']:<9.4g} largest {c['largest']:<9.4g} {c['parameters']}"
            )
    lines += ["", *wording.summary(compiled.bounded)]
    return Explanation("\n".join(lines), record, _statements(compiled, opened.backend.dialect))


def _statements(compiled: Compiled, dialect: Dialect) -> tuple[str, ...]:
    return (lower(statement(compiled, 1, 1), dialect),)


def _stretch_text(compiled: Compiled) -> str:
    stretch = compiled.stretches
    assert stretch is not None
    periods = "steps" if compiled.stream.personal is None else "periods"
    twice = (
        "" if stretch.both == 1 else ", twice, for others may count in the place of those that go"
    )
    return (
        f"one of {stretch.protection.within} meets at most {stretch.span.priced} {periods}; limits count in each of "
        f"them{twice} (stream.window)"
    )


def _description(compiled: Compiled) -> str:
    stream = compiled.stream
    steps = "an open horizon" if stream.steps is None else f"{stream.steps} steps"
    descriptions = {"running": "running totals", "steps": "each step"}
    what = (
        descriptions[stream.shows]
        if isinstance(stream.shows, str)
        else f"sums of the last {stream.shows} steps"
    )
    return f"{what}, steps of {stream.step} from {stream.start}, {steps}"


def _record(compiled: Compiled) -> dict[str, Any]:
    chosen = choices(compiled)
    paid = costs(compiled, [choice.chosen for choice in chosen])
    guarantee = []
    for protection in compiled.protections:
        if protection.name in paid:
            charge = Charge.of_event(protection.name, paid[protection.name])
            guarantee.append(
                {
                    "protection": protection.name,
                    "protects": protection_text(protection),
                    "epsilon": charge.epsilon / 10**9,
                    "delta": charge.delta / 10**18,
                }
            )
    measures = []
    for measure, choice in zip(compiled.bounded.release.measures, chosen, strict=True):
        scale = float(measure.step)
        measures.append(
            {
                "measure": measure.words,
                "bound": float(choice.chosen.facts.bound * measure.step),
                "compared": [
                    {
                        "way": c.name,
                        "law": c.law,
                        "parameters": c.parameters,
                        "mean": c.mean * scale,
                        "largest": c.largest * scale,
                        "chosen": (c.name, c.law) == (choice.chosen.name, choice.chosen.law),
                    }
                    for c in choice.compared
                ],
            }
        )
    return {
        "stream": compiled.stream.name,
        "guarantee": guarantee,
        "measures": measures,
        "enforced": list(compiled.bounded.release.notes),
    }
