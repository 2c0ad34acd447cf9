"""Ours: the same question on a PostgreSQL source was charged each time, and pages of the port promised otherwise.

A server counts as the same for a stretch of time by the clock. What happens to rows meanwhile must not show: that an
answer is made anew would tell that a row has changed.
"""

import psycopg
import pytest
from clinic_service import COUNT, service_at

from secant.errors import SecantError
from secant.service import opened as versions
from secant.service.asking import Question
from secant.service.users import User

pytestmark = pytest.mark.postgres
ADA = User("ada", "analyst")
NOON = 1_800_014_400.0
POLICY = """
[database]
source = "{address}"
[protections.rows]
kind = "rows"
epsilon = 9
"""


def changed(address, *statements):
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def service(tmp_path, postgres_database, monkeypatch):
    changed(
        postgres_database,
        "CREATE TABLE visits (id integer, cost float8)",
        "INSERT INTO visits SELECT i, i FROM generate_series(1, 50) i",
    )
    clock = [NOON]
    monkeypatch.setattr(versions, "_clock", lambda: clock[0])
    services = []

    def at(**given):
        services.append(service_at(tmp_path, POLICY.format(address=postgres_database), **given))
        return services[-1], clock, postgres_database

    yield at
    for each in services:
        each.close()


def asked(service):
    return service.ask(ADA, Question(COUNT, epsilon="0.5")).result()


def test_four_times_in_a_row_cost_once(service):
    server, clock, _ = service()
    told = [asked(server) for _ in range(4)]
    assert [t.reused for t in told] == [False, True, True, True]
    assert len({t.answer.release_id for t in told}) == 1
    clock[0] += 15 * 60 - 1
    assert asked(server).reused
    clock[0] += 1
    assert not asked(server).reused


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM visits WHERE id = 7",
        "UPDATE visits SET cost = 0 WHERE id = 7",
        "INSERT INTO visits VALUES (51, 1)",
        "TRUNCATE visits",
    ],
)
def test_whether_an_answer_is_made_anew_tells_nothing_of_rows(service, statement):
    server, clock, address = service()
    first = asked(server)
    changed(address, statement)
    assert asked(server).answer.release_id == first.answer.release_id
    clock[0] += 15 * 60
    assert not asked(server).reused  # as it would be without the change


@pytest.mark.parametrize(
    ("version", "seconds", "reused"),
    [("every 1 day", 6 * 3600, True), ("every 30 seconds", 30, False), ("files", 0, False)],
)
def test_the_owner_says_how_old_an_answer_may_be(service, version, seconds, reused):
    server, clock, _ = service(**{"reuse.version": version})
    asked(server)
    clock[0] += seconds
    assert asked(server).reused is reused


@pytest.mark.parametrize(
    "version", ["every", "every day", "every 0 hours", "every 5 moons", "auto 3"]
)
def test_what_is_no_stretch_of_time_is_refused(service, version):
    server, _, _ = service(**{"reuse.version": version})
    with pytest.raises(SecantError, match="version of the data"):
        asked(server)


def test_init_asks_how_old_an_answer_may_be(tmp_path, postgres_database, capsys):
    from secant.cli.commands.init import init

    changed(postgres_database, "CREATE TABLE visits (id integer)")
    target = tmp_path / "started.toml"
    assert init(postgres_database, policy=str(target)) == 0
    assert "How long may an answer of `secant serve` be old?" in capsys.readouterr().out
    assert '# version = "every 1 day"' in target.read_text()
