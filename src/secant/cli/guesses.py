"""Pictures and tables of guesses against ε: bounds for everybody, and the owner's simulation.

In: the report about an attacker and the policy, or a simulation. Out: SVG text, lines. The bounds are of public numbers
only; a simulation was computed from data, and is for the owner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from secant.attack.curve import GuessCurve, guess_curves
from secant.display.curves import Line, chart
from secant.errors import UsageError
from secant.policy.policy import Policy
from secant.schema.catalog import Catalog

LEAST = Fraction(1, 100)
POINTS = 33
TITLES = {"answer": "this answer", "spent": "so far", "budget": "budget"}


def guess_picture(
    attacker: str, report: Sequence[Mapping[str, Any]], policy: Policy, catalog: Catalog
) -> str:
    """Draw bounds of the chance, or of what is added to it, over a logarithmic ε."""
    entries = [entry for entry in report if entry["guesses"] != "nothing"]
    if not entries:
        raise UsageError("USE-001", "nothing is left to guess, so there is nothing to draw")
    names = list(dict.fromkeys(entry["protection"] for entry in entries))
    protections = [p for p in policy.protections if p.name in names]
    most = max([Fraction(10), *(p.epsilon for p in protections)])
    grid = _grid(LEAST, most)
    lines: list[Line] = []
    for curve in guess_curves(attacker, policy, protections, catalog, grid):
        lines += _lines(curve)
    if not lines:
        raise UsageError("USE-001", "no bound is known, so there is nothing to draw")
    marks = {
        (float(f"{entry[what]['epsilon']:.6g}"), label)
        for entry in entries
        for what, label in TITLES.items()
        if what in entry and float(LEAST) <= entry[what]["epsilon"] <= float(most)
    }
    return chart(
        lines,
        title="What could be guessed, at most",
        x_label="ε of all answers together",
        y_label="chance",
        log_x=True,
        marks=sorted(marks),
    ).svg


def _grid(low: Fraction, high: Fraction) -> list[Fraction]:
    """Give points that are even on a logarithmic axis, in three digits."""
    ratio = (float(high) / float(low)) ** (1 / (POINTS - 1))
    inside = [Fraction(f"{float(low) * ratio**i:.3g}") for i in range(1, POINTS - 1)]
    return sorted({low, *inside, high})


def _lines(curve: GuessCurve) -> list[Line]:
    about = "who is in" if curve.guesses == "membership" else "value"
    name = f"{curve.protection}, {about}"
    after = [(e, c.posterior) for e, c in curve.points if c.posterior is not None]
    mean = [(e, c.on_average) for e, c in curve.points if c.on_average is not None]
    more = [(e, c.advantage) for e, c in curve.points if c.advantage is not None]
    if after:
        prior = curve.points[0][1].prior
        flat = [] if prior is None else [Line([(e, prior) for e, _ in after], f"{name}: before")]
        lines = [Line(after, f"{name}: after"), *flat]
        return [*lines, Line(mean, f"{name}: average", dashed=True)] if mean else lines
    return [Line(more, f"{name}: added, at most")] if more else []


def simulation_lines(result: Mapping[str, Any]) -> list[str]:
    """Put a simulation into a table, under its right name."""
    lines = [
        f"simulation, no guarantee: {result['attribute']}, prior {result['prior_words']}",
        f"the attacker knows all other columns, and that rows are drawn from the prior; before: {result['prior']:.1%}",
        "",
        f"{'epsilon':>8}  {'P_C, at this answer':>20}  {'P_P, on average':>16}  guaranteed at most",
    ]
    for point in result["points"]:
        bounds = ", ".join(
            f"{name} {bound:.1%}" for name, bound in point["bounds"].items() if bound is not None
        )
        lines.append(
            f"{point['epsilon']:>8g}  {point['at_this_answer']:>20.1%}  {point['on_average']:>16.1%}  {bounds}"
        )
    return lines


def simulation_picture(result: Mapping[str, Any]) -> str:
    """Draw a simulation beside the bounds."""
    points = result["points"]
    lines = [
        Line([(p["epsilon"], p["at_this_answer"]) for p in points], "P_C, simulated"),
        Line([(p["epsilon"], p["on_average"]) for p in points], "P_P, simulated"),
    ]
    for name in points[0]["bounds"]:
        bounds = [
            (p["epsilon"], p["bounds"][name]) for p in points if p["bounds"][name] is not None
        ]
        lines += [Line(bounds, f"{name}: at most", dashed=True)] if bounds else []
    return chart(
        lines,
        title=f"{result['attribute']}: a simulation for the owner, no guarantee",
        x_label="ε",
        y_label="chance",
        log_x=True,
    ).svg
