"""`secant demo`: a complete private answer on sample data made on the spot.

In: nothing, or a directory to keep the data in. Out: questions with their true and private answers,
a refusal, the budget. True answers are shown because nobody lives in this clinic; no other command
but the owner's `inspect` prints one.
"""

from __future__ import annotations

import tempfile
import textwrap
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from secant.cli.options import Json, flag, named, refuse_beside
from secant.errors import InternalError, SecantError, UsageError

if TYPE_CHECKING:
    from secant.engine import Answer, Connection

QUESTIONS: tuple[tuple[str, str, str], ...] = (
    (
        "How many patients are 65 or older?",
        "SELECT count(*) AS patients FROM patients WHERE age >= 65",
        "0.5",
    ),
    (
        "What does a visit cost, ward by ward?",
        "SELECT ward, avg(cost) AS average_cost FROM visits GROUP BY ward ORDER BY ward",
        "1.5",
    ),
    (
        "How many visits come from each district in the first half of the year?",
        """\
SELECT p.district, count(*) AS visits
FROM visits v JOIN patients p ON v.patient_id = p.patient_id
WHERE v.day < DATE '2025-07-01'
GROUP BY p.district ORDER BY p.district""",
        "1",
    ),
)
"""What is asked: in words, in SQL, with this ε. The order makes true and private rows line up."""
TOO_CURIOUS = "SELECT patient_id, age FROM patients WHERE district = 'Hill'"

Keep = Annotated[
    str | None,
    named("--keep", "Keep the data and the policy here, to go on.", "DIR"),
]


Serve = Annotated[
    bool,
    flag("--serve", "Serve the sample data: the console and the HTTP API."),
]
Http = Annotated[
    int | None,
    named("--http", "With --serve: the port, 0 for any; else 8443.", "PORT"),
]


def demo(*, keep: Keep = None, serve: Serve = False, http: Http = None, json: Json = False) -> int:
    """Answer private questions about sample data made on the spot."""
    if serve:
        from secant.cli.commands.demo_service import serve_clinic

        refuse_beside("--serve", {"--json": json})
        with _folder(keep) as directory:
            return serve_clinic(Path(directory), 8443 if http is None else http)
    refuse_beside("questions: it is the port of --serve", {"--http": http})
    import secant
    from secant.cli import show
    from secant.cli.demo_data import make_clinic

    with _folder(keep) as directory:
        with show.working("making a clinic", quiet=json):
            database, policy = make_clinic(Path(directory))
            truths = _true_answers(database)
        with secant.connect(policy=policy, create=True) as connection:
            answered = []
            if not json:
                _introduce()
            for (question, sql, epsilon), truth in zip(QUESTIONS, truths, strict=True):
                answer = connection.sql(sql, epsilon=epsilon)
                answered.append((question, sql, answer, truth))
                if not json:
                    _tell(question, sql, answer, truth)
            refusal = _refusal(connection)
            accounts = connection.budget
            if json:
                show.print_json(_report(answered, refusal, connection))
                return 0
    show.say("A question that would show people is refused", style="bold cyan")
    show.say(refusal.render())
    show.say()
    show.print_budget(accounts)
    if keep:
        show.say(f'Kept in {keep}. Go on there: secant query "SELECT ..." --epsilon 0.5')
    else:
        show.say("Nothing was kept; `secant demo --keep DIR` leaves the data and the policy.")
    return 0


def _folder(keep: str | None) -> tempfile.TemporaryDirectory[str] | nullcontext[str]:
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="secant-demo-")
    directory = Path(keep)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        used = any(directory.iterdir())
    except OSError as error:
        raise UsageError("USE-001", f"cannot use {keep}: {error.strerror}") from None
    if used:
        raise UsageError("USE-001", f"{keep} is not empty", hint="name a new directory")
    return nullcontext(str(directory.resolve()))


def _true_answers(database: Path) -> list[list[tuple[object, ...]]]:
    import duckdb

    with duckdb.connect(str(database), read_only=True) as connection:
        return [connection.execute(sql).fetchall() for _, sql, _ in QUESTIONS]


def _refusal(connection: Connection) -> SecantError:
    try:
        connection.sql(TOO_CURIOUS, epsilon="1")
    except SecantError as error:
        return error
    raise InternalError("BUG-001", "a question that shows people was answered")


def _introduce() -> None:
    from secant.cli import show

    show.say("A clinic with 2,000 patients who never existed; one patient is protected.")
    show.say("True answers are shown beside the private ones because the data are made up.")
    show.say()


def _tell(question: str, sql: str, answer: Answer, truth: list[tuple[object, ...]]) -> None:
    from secant.cli import show
    from secant.display.parts import table_parts

    show.say(question, style="bold cyan")
    show.say(textwrap.indent(sql, "  "), style="dim")
    show.say()
    beside = ("true (sample data)", truth)
    show.print_parts(table_parts(answer.columns, answer.rows, answer.error, beside=beside))
    show.say()
    show.print_guarantees(answer.guarantee)
    show.say()


def _report(
    answered: list[tuple[str, str, Answer, list[tuple[object, ...]]]],
    refusal: SecantError,
    connection: Connection,
) -> dict[str, object]:
    return {
        "sample_data": True,
        "questions": [
            {"question": question, "sql": sql, "true_rows": truth, "answer": answer.to_dict()}
            for question, sql, answer, truth in answered
        ],
        "refused": {"sql": TOO_CURIOUS, "error": refusal.to_dict()},
        "budget": connection.budget.to_list(),
    }
