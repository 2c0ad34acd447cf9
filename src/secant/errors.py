"""Every error that Secant raises, by who can act on it.

In: names, declared facts, rule ids, places in the user's text. Out: one sentence, one place, one thing to do.
A value read from the data never enters a message; an engine's own text can quote a row, so it is withheld. An error
is an object, too, with the frames that it passed and the errors before it: `public_api` cuts them off where it leaves.
"""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, ParamSpec, TypeVar

from secant.records import frozen

P = ParamSpec("P")
T = TypeVar("T")


@frozen
class Span:
    """A stretch of the user's text: `start` inclusive, `end` exclusive, in characters."""

    start: int
    end: int


class SecantError(Exception):
    """Base of all errors: a stable code, one sentence, a place, a hint."""

    family: ClassVar[str] = "BUG"
    exit_status: ClassVar[int] = 70
    retry_after: int | None = None
    """Seconds after which the same may go well, where that is known."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        text: str = "",
        span: Span | None = None,
        details: tuple[str, ...] = (),
    ) -> None:
        if code not in _CODES:
            raise AssertionError(f"error code {code} is not listed in CODES")
        if not code.startswith(self.family):
            raise AssertionError(f"{code} does not belong to {type(self).__name__}")
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.text = text
        self.span = span
        self.details = details

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled with `args` alone, which does not make one again: a pool of processes broke on it.
        fields = (self.code, self.message, self.hint, self.text, self.span, self.details)
        return _again, (type(self), *fields)

    def to_dict(self) -> dict[str, object]:
        """Give the error as plain values, for JSON and a server's response; `text` is all of it, as people read it."""
        return {
            "code": self.code,
            "message": self.message,
            "text": self.render(),
            "hint": self.hint,
            "span": [self.span.start, self.span.end] if self.span else None,
            "details": list(self.details),
        }

    def render(self) -> str:
        """Give the error as a person reads it: what, where, why, what now."""
        lines = [f"{self.code}  {self.message}"]
        lines += underline(self.text, self.span)
        lines += [f"  {detail}" for detail in self.details]
        if self.hint:
            lines.append(f"  Now: {self.hint}")
        return "\n".join(lines)


def _again(
    kind: type[SecantError],
    code: str,
    message: str,
    hint: str,
    text: str,
    span: Span | None,
    details: tuple[str, ...],
) -> SecantError:
    """Make an error once more, in another process."""
    return kind(code, message, hint=hint, text=text, span=span, details=details)


LONGEST_SHOWN = 120
"""Letters of a line that an error shows."""


def underline(text: str, span: Span | None) -> list[str]:
    """Show the line of `text` that holds `span`, with carets under it."""
    if span is None or not text or span.start > len(text):
        return []
    begin = text.rfind("\n", 0, span.start) + 1
    stop = text.find("\n", span.start)
    line = text[begin : stop if stop >= 0 else len(text)]
    left = span.start - begin
    width = max(1, min(span.end, begin + len(line)) - span.start)
    # A very long line is shown around the place, not from its start.
    shift = max(0, left - 60) if len(line) > LONGEST_SHOWN else 0
    shown = line[shift : shift + LONGEST_SHOWN]
    if shift:
        shown = f"…{shown[1:]}"
    if shift + LONGEST_SHOWN < len(line):
        shown = f"{shown[:-1]}…"
    return [f"  {shown}", "  " + " " * (left - shift) + "^" * min(width, LONGEST_SHOWN)]


def meant(word: str, known: Iterable[str], before: str = "") -> str:
    """Ask whether one of the known names was meant; nothing where none is near."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), names, n=1)
    return f"{before}did you mean {names[close[0]]}?" if close else ""


class UsageError(SecantError, ValueError):
    """The caller passed something that cannot be meant."""

    family = "USE"
    exit_status = 2


class SqlError(SecantError):
    """The analyst's SQL cannot be read, or is not something Secant runs."""

    family = "SQL"
    exit_status = 2


class PolicyError(SecantError):
    """The data owner's policy is wrong or says too little."""

    family = "POL"
    exit_status = 2


class Refused(SecantError):  # noqa: N818 - a verdict, not a fault
    """No analysis can prove a bound; nothing was run and nothing was spent."""

    family = "REF"
    exit_status = 3


class BudgetError(SecantError):
    """The budget does not allow it, or the ledger cannot be trusted or reached."""

    family = "BUD"
    exit_status = 4


class BackendError(SecantError):
    """The engine could not be reached, or could not finish what was sent."""

    family = "BAK"
    exit_status = 5


class AccessError(SecantError):
    """Who asks could not be told, or may not do this."""

    family = "AUT"
    exit_status = 6


class ServiceError(SecantError):
    """The service cannot take the request, or did not finish it."""

    family = "SRV"
    exit_status = 7


class InternalError(SecantError):
    """An invariant of ours broke. Budget that was reserved stays spent."""

    family = "BUG"
    exit_status = 70


def public_api(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap what is called from outside: an error leaves without the frames and the errors that it came through.

    Frames hold exact results, and an engine's error quotes rows (I5). What nobody expected becomes BUG-001, without its
    words. With SECANT_DEBUG=1 it leaves as it is, which is for whoever may see the data.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if debugging() and isinstance(error, Exception) and not isinstance(error, SecantError):
                raise
            leaving = _leaving(error)
            del args, kwargs
        raise leaving

    return guarded


def debugging() -> bool:
    """Whether whoever runs this asked for traces, which may quote data."""
    return os.environ.get("SECANT_DEBUG") == "1"


def _leaving(error: BaseException) -> BaseException:
    trace = error.__traceback__
    if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
        return TypeError(
            *error.args
        )  # the call itself did not fit; Python names the arguments, not their values
    if isinstance(error, MemoryError):
        return over_limit()
    if isinstance(error, Exception) and not isinstance(error, SecantError):
        return InternalError(
            "BUG-001",
            f"an invariant of Secant broke ({type(error).__name__})",
            hint="report the query, without data; budget that was reserved stays spent if anything was sent",
        )
    error.__traceback__ = error.__cause__ = error.__context__ = None
    error.__dict__.pop("__notes__", None)
    return error


def over_limit() -> BackendError:
    """Say that a limit was reached, in the same words whichever it was: that depends on the data."""
    return BackendError(
        "BAK-005",
        "a statement reached a limit of time, memory or groups",
        hint="ask for less, or let the data owner raise the limits of the policy; budget that was reserved for a "
        "statement that was sent stays spent",
    )


# The whole list, in one place (I8). Numbers are never reused.
CODES: tuple[tuple[str, str], ...] = (
    ("USE-001", "an argument has a value that makes no sense"),
    ("USE-002", "epsilon must be a finite positive number"),
    ("USE-003", "delta must be at least 0 and less than 1"),
    ("USE-004", "a level must lie strictly between 0 and 1"),
    ("USE-005", "the named protection cannot be chosen"),
    ("USE-006", "an optional package is missing"),
    ("USE-008", "a function cannot be sampled or released"),
    ("USE-009", "the state of a sampling run cannot be used"),
    ("USE-010", "there is no such stream, or no such step of it"),
    ("USE-011", "the parameters do not fit the placeholders of the query"),
    ("SQL-001", "the text cannot be parsed"),
    ("SQL-002", "there is no such table or column"),
    ("SQL-003", "a name is ambiguous"),
    ("SQL-004", "types do not fit"),
    ("SQL-005", "only one SELECT statement is accepted"),
    ("SQL-006", "the function or clause is not accepted"),
    ("SQL-007", "the query is too large"),
    ("SQL-008", "the query is not well formed"),
    ("SQL-009", "planning the question takes too many steps"),
    ("POL-001", "the policy file cannot be read"),
    ("POL-002", "the policy file has mistakes"),
    ("POL-003", "a fact is missing from the policy"),
    ("POL-004", "a declared fact does not hold on public data"),
    ("POL-005", "a table is neither protected nor named public"),
    ("POL-006", "a stream was declared otherwise when it began"),
    ("REF-101", "the query cannot be made private as written: no analysis bounds it"),
    ("REF-102", "the query returns rows of a protected table"),
    ("REF-103", "a release of this kind needs a positive delta"),
    ("REF-104", "the smooth bound needs a larger epsilon"),
    ("REF-105", "the chosen protection does not cover what the query reads"),
    ("REF-106", "the public error is larger than allowed, or known only with the answer"),
    ("REF-107", "more could be guessed than is allowed, or what could be guessed has no bound"),
    ("REF-108", "the question cannot be a stream"),
    ("BUD-001", "the budget does not cover this release"),
    ("BUD-002", "the ledger cannot be opened or written"),
    ("BUD-003", "the ledger does not add up"),
    ("BUD-004", "the ledger was written by a newer version"),
    ("BUD-005", "a release cannot be priced"),
    ("BUD-006", "a reservation has ended"),
    ("BUD-007", "the ledger has lost records, or is gone"),
    ("BUD-008", "the ledger holds charges of protections that the policy does not name"),
    ("BUD-009", "numbers of a stream may be lost"),
    ("BAK-001", "the data source cannot be opened"),
    ("BAK-002", "the engine failed while running a statement"),
    ("BAK-003", "the engine cannot express the query"),
    ("BAK-004", "the data source changed after it was opened"),
    ("BAK-005", "a limit of time, memory or groups was reached"),
    ("BAK-006", "the question was canceled"),
    ("AUT-001", "the login or the token is refused"),
    ("AUT-002", "the role does not allow this"),
    ("AUT-003", "too many logins have failed"),
    ("AUT-004", "too many logins wait for their turn"),
    ("SRV-001", "the service is full, or stops"),
    ("SRV-002", "the idempotency key belongs to another request"),
    ("SRV-003", "a request of this key was interrupted, and may have been charged"),
    ("SRV-004", "the request cannot be read"),
    ("SRV-005", "the store of users cannot be used"),
    ("BUG-001", "an invariant of Secant broke"),
)
_CODES = frozenset(code for code, _ in CODES)

# What `explain` says, and `query` before it spends; nothing is refused for it. Public facts only.
WARNINGS: tuple[tuple[str, str], ...] = (
    ("WRN-001", "the public error is as large as the whole range of the value"),
    ("WRN-002", "groups of few units are hidden"),
    ("WRN-003", "a literal is not among the declared values of its column"),
    ("WRN-004", "a literal lies outside the declared range of its column"),
    ("WRN-005", "few rows stand behind a number, which may drown in noise"),
    ("WRN-006", "an epsilon this large hides next to nothing"),
    ("WRN-007", "a delta this large may show somebody openly"),
    ("WRN-009", "a range or limit that is not declared is found privately with a part of epsilon"),
    (
        "WRN-008",
        "the error asked for was foreseen for a declared number of rows, and is larger with fewer",
    ),
)
