"""Options that several commands share, so that they are spelled and explained once.

In: words of the command line. Out: annotated types for cyclopts, and the text of a question.
Numbers stay text here: the engine reads them exactly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

from secant.errors import UsageError

USUAL_LEVEL = "0.95"
LARGEST_QUESTION = 16_000_000  # characters; the SQL stage has its own, smaller wall


def named(
    name: str | list[str], help_text: str, metavar: str, *, hyphen: bool = False
) -> Parameter:
    """Describe an option that takes a value; with `hyphen` one that may begin like an option: a negative number."""
    return Parameter(name=name, help=help_text, metavar=metavar, allow_leading_hyphen=hyphen)


def flag(name: str, help_text: str) -> Parameter:
    """Describe an option that is there or not; there is no --no-… beside it."""
    return Parameter(name=name, negative="", help=help_text)


PolicyPath = Annotated[
    str | None,
    named(
        ["--policy", "-p"],
        "The policy file; else the one that SECANT_POLICY names, else ./policy.toml.",
        "FILE",
    ),
]
Json = Annotated[bool, flag("--json", "Print one JSON object, for programs.")]
Question = Annotated[
    str,
    Parameter(
        help="One SELECT statement; `-` reads it from standard input.", allow_leading_hyphen=True
    ),
]
ParameterValues = Annotated[
    list[str] | None,
    Parameter(
        name="--parameter",
        help="A value for the next `?` or `$1`, or NAME=VALUE for `:NAME`; may be given several times.",
        metavar="VALUE",
        allow_leading_hyphen=True,
        negative="",
    ),
]
Epsilon = Annotated[
    str,
    named("--epsilon", "Epsilon to spend.", "NUMBER", hyphen=True),
]
WantedError = Annotated[
    str | None,
    named(
        "--error",
        'Instead of --epsilon: find the least for this error, such as 20 (ranks of a median) or "5% of 2000".',
        "ERROR",
        hyphen=True,
    ),
]
MaxError = Annotated[
    str | None,
    named("--max-error", "Refuse to spend where the error would be larger.", "ERROR", hyphen=True),
]
Certain = Annotated[
    bool,
    flag(
        "--certain",
        "Ends that hold for every database: noise for the declared limits, nothing estimated.",
    ),
]
Guessing = Annotated[
    str | None,
    named(
        "--attacker",
        'Spend only where no more is guessed, "people.age within 2 at most 30%"; alone, find the largest epsilon.',
        "TEXT",
    ),
]
Delta = Annotated[
    str | None,
    named(
        "--delta",
        "Delta to spend; by default a hundredth of the protection's.",
        "NUMBER",
        hyphen=True,
    ),
]
Level = Annotated[
    str | None,
    named(
        "--level",
        "Confidence of the printed error; by default 0.95.",
        "NUMBER",
        hyphen=True,
    ),
]
ProtectionName = Annotated[
    str | None,
    named("--protection", "Which of the owner's alternative protections to use.", "NAME"),
]
Analyst = Annotated[
    str,
    named("--analyst", "Who asks: the name that the ledger keeps.", "NAME"),
]
Isotonic = Annotated[
    bool,
    flag(
        "--isotonic",
        "Show running totals of what is never below zero as the nearest series that never falls.",
    ),
]
NoCreate = Annotated[
    bool,
    flag("--no-create", "Fail where there is no ledger yet, instead of starting one."),
]
Source = Annotated[
    str | None,
    Parameter(name="--source", help="Read this instead of the source in the policy."),
]


def policy_file(path: str | None) -> str:
    """Give the policy file of a command: the option goes before the environment, and that before this folder."""
    return path or os.environ.get("SECANT_POLICY") or "policy.toml"


def refuse_beside(way: str, options: Mapping[str, object]) -> None:
    """Refuse options that this way of calling a command does not obey: none is passed over in silence."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise UsageError(
                "USE-001", f"{option} means nothing beside {way}", hint="leave one of them out"
            )


def question_of(text: str) -> str:
    """Give the SQL text, read from standard input where it is `-`."""
    if text != "-":
        return text
    raw = sys.stdin.buffer.read(LARGEST_QUESTION + 1)
    if len(raw) > LARGEST_QUESTION:
        raise UsageError("USE-001", "the question on standard input is larger than 16 MB")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("USE-001", "the question on standard input is not UTF-8") from None
