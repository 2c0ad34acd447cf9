"""`secant facts`: which ranges and limits were found privately, and what becomes of them.

What was found once serves every later question, also where it was found badly. Discarding is a record of its own: no
record is rewritten, and what was spent stays spent.
"""

from __future__ import annotations

from typing import Annotated

from secant.cli.options import Json, PolicyPath, Source, named, policy_file
from secant.errors import UsageError

Discard = Annotated[
    str | None,
    named(
        "--discard",
        "Forget what was found: who needs it next pays for it again.",
        "TABLE.COLUMN or TABLE",
    ),
]
Price = Annotated[str | None, named("--epsilon", "What finding it again may cost.", "NUMBER")]
Find = Annotated[
    str | None,
    named(
        "--find",
        "Find a range, or a limit of rows, again; without --epsilon say what that means.",
        "TABLE.COLUMN or TABLE",
    ),
]


def facts(
    *,
    discard: Discard = None,
    find: Find = None,
    epsilon: Price = None,
    policy: PolicyPath = None,
    source: Source = None,
    json: Json = False,
) -> int:
    """List the ranges and limits that were found privately; discard one, or find it again."""
    import secant
    from secant.cli import show

    if discard is not None and find is not None:
        raise UsageError("USE-001", "--discard and --find are two things", hint="give one of them")
    if epsilon is not None and find is None:
        raise UsageError("USE-001", "--epsilon pays for --find", hint="say what is to be found")
    start = None if find is not None else False  # who only looks starts no ledger
    with secant.connect(source, policy=policy_file(policy), create=start) as database:
        if find is not None and epsilon is None:
            left = ", ".join(
                f"{name} has ε {float(account.remaining_epsilon):.6g} left"
                for name, account in database.budget.items()
            )
            raise UsageError(
                "USE-001",
                f"finding {find} costs the ε that it is given, once; {left}",
                hint=f"secant facts --find {find} --epsilon 0.5",
            )
        report: dict[str, object] = {}
        if discard is not None:
            database.discard_fact(discard)
            report["discarded"] = discard
        if find is not None and epsilon is not None:
            report["found"] = database.find_fact(find, epsilon=epsilon)["told"]
        known = database.facts() if database.has_ledger else []
    if json:
        show.print_json({**report, "facts": known})
        return 0
    if discard is not None:
        show.say(f"Discarded: {discard}. Who needs it next pays for it again.")
    if find is not None:
        show.say(str(report["found"]))
    show.print_records([_line(fact) for fact in known], empty="Nothing was found privately.")
    return 0


def _line(fact: dict[str, object]) -> dict[str, str]:
    low, high = fact["low"], fact["high"]
    return {
        "fact": str(fact["name"]),
        "found": f"{high:,g} rows of a unit" if low is None else f"{low:,g} to {high:,g}",
        "outside, at most": f"{fact['outside']} units",
        "time (UTC)": f"{fact['time']:%Y-%m-%d %H:%M:%S}",
        "epsilon": f"{fact['epsilon']:g} ({fact['protection']})",
        "for": str(fact["question"] or ""),
    }
