"""Parameters at the PostgreSQL port: each is what PostgreSQL reads, in text and in binary."""

from __future__ import annotations

import datetime
import random
import struct
import uuid
from decimal import Decimal

import psycopg
import pytest
from clients_found import CLIENTS, program, run

ONE = datetime.datetime(2000, 1, 1, 0, 0, 1)  # noqa: DTZ001 - a timestamp without a zone
MARCH = datetime.date(2025, 3, 1)
MORNING = datetime.datetime(2025, 3, 1, 8, 30, 0, 250_000)  # noqa: DTZ001
UUID = "b0a0f4e0-0000-4000-8000-000000000001"
QUESTION = b"SELECT count(*) AS n FROM towns WHERE $1 IS NULL"


def array(item, *values):
    """Write an array of one dimension in the binary format."""
    cells = (b"\xff" * 4 if v is None else struct.pack("!i", len(v)) + v for v in values)
    return struct.pack("!iiIii", 1, None in values, item, len(values), 1) + b"".join(cells)


@pytest.fixture
def connection(secant_port):
    with psycopg.connect(secant_port.address(), autocommit=True) as connection:
        yield connection


def bound(secant_port, connection, oid, form, raw):
    """Bind one value as its client would, and give what Secant took it for; or the SQLSTATE."""
    connection.execute("BEGIN")
    told = connection.pgconn.exec_params(QUESTION, [raw], [oid], [form])
    process = connection.info.backend_pid
    (session,) = (s for (number, _), s in _sessions(secant_port).items() if number == process)
    portal = session.portals.get("")
    connection.execute("ROLLBACK")
    return portal.values[0] if portal is not None else told.error_field(67).decode()


def _sessions(secant_port):
    return secant_port.front.port._sessions


VALUES = [
    (16, 0, b"t", True), (16, 0, b" FALSE ", False), (16, 0, b"off", False), (16, 1, b"\0", False),
    (16, 1, b"\1", True), (20, 0, b"-7", -7), (20, 1, struct.pack("!q", -(2**63)), -(2**63)),
    (23, 1, struct.pack("!i", 7), 7),
    (21, 1, struct.pack("!h", 3), 3), (26, 0, b"4000000000", 4_000_000_000),
    (25, 0, b"a'b\\ \xc3\xa9\"\n", "a'b\\ é\"\n"), (1043, 1, b"", ""), (0, 0, b"unsaid", "unsaid"), (0, 1, b"x", "x"),
    (701, 0, b"0.1", 0.1), (701, 1, struct.pack("!d", 1 / 3), 1 / 3), (701, 1, struct.pack("!d", 5e-324), 5e-324),
    (701, 0, b"1e300", 1e300), (700, 1, struct.pack("!f", 0.1), struct.unpack("!f", struct.pack("!f", 0.1))[0]),
    (1700, 0, b"1.50", Decimal("1.50")), (1700, 1, struct.pack("!4h2h", 2, 0, 0, 2, 1, 5000), Decimal("1.50")),
    (1700, 1, struct.pack("!hhHhh", 1, 1, 0x4000, 0, 3), Decimal(-30000)), (1700, 0, b"1e-20", Decimal("1e-20")),
    (1082, 0, b"2025-03-01", MARCH), (1082, 0, b"2025-03-01 +00", MARCH), (1082, 0, b"2025-03-01 10:00:00+02", MARCH),
    (1082, 0, b"March 1, 2025", MARCH), (1082, 1, struct.pack("!i", 366), datetime.date(2001, 1, 1)),
    (1114, 1, struct.pack("!q", 1_000_000), ONE), (1114, 0, b"2025-03-01 08:30:00.25", MORNING),
    (1114, 0, b"2025-03-01T08:30:00.250Z", MORNING), (1184, 0, b"2025-03-01 09:30:00.25+01", MORNING),
    (1184, 1, struct.pack("!q", 1_000_000), ONE),
    (1083, 0, b"8:30", "08:30:00"), (1083, 1, struct.pack("!q", 3_600_000_000), "01:00:00"),
    (1186, 0, b"1 day 02:00", datetime.timedelta(1, 7200)),
    (1186, 1, struct.pack("!qii", -1_500_000, 2, 0), datetime.timedelta(2, -1.5)),
    (2950, 0, UUID.upper().encode(), UUID), (2950, 1, uuid.UUID(UUID).bytes, UUID),
    (1009, 0, b'{a,"b,c",NULL,"d\\"e"}', ["a", "b,c", None, 'd"e']), (1016, 0, b"{1,2}", [1, 2]), (1016, 0, b"{}", []),
    (1016, 1, array(20, struct.pack("!q", 5), None, struct.pack("!q", 6)), [5, None, 6]),
    (1015, 1, array(1043, b"x", b"NULL"), ["x", "NULL"]), (1022, 0, b"{0.1,NULL}", [0.1, None]),
    (1182, 0, b"{2025-03-01}", [MARCH]), (1185, 0, b"{2025-03-01 09:30:00.25+01}", [MORNING]),
    (1000, 0, b"{t,f}", [True, False]), (1231, 0, b"{1.0,2}", [Decimal("1.0"), Decimal(2)]),
    (2951, 0, f"{{{UUID}}}".encode(), [UUID]),
]  # fmt: skip


def test_each_type_in_both_formats(secant_port, connection):
    connection.execute("SET TimeZone = 'UTC'")
    for oid, form, raw, value in VALUES:
        found = bound(secant_port, connection, oid, form, raw)
        assert (type(found), found) == (type(value), value), (oid, form, raw)


@pytest.mark.parametrize("oid", sorted({oid for oid, *_ in VALUES}))
def test_null_of_each_type(secant_port, connection, oid):
    assert bound(secant_port, connection, oid, 0, None) is None
    assert bound(secant_port, connection, oid, 1, None) is None


UNREAD = [
    (20, 0, b"abc", "22P02"), (20, 0, b"9223372036854775808", "22003"), (20, 1, b"12", "08P01"),
    (16, 0, b"maybe", "22P02"),
    (1700, 1, b"\1", "08P01"), (1700, 0, b"1,5", "22P02"), (701, 0, b"1e400", "22003"),
    (1082, 0, b"2025-02-30", "22008"), (1082, 0, b"then", "22007"), (1114, 1, b"\0" * 7, "08P01"),
    (2950, 0, b"123", "22P02"), (1016, 0, b"{1,", "22P02"), (1016, 1, b"\0" * 5, "08P01"), (25, 0, b"\xff", "22021"),
    (99999, 0, b"x", "XX000"), (1082, 0, b"infinity", "42P02"), (1082, 0, b"0044-03-15 BC", "42P02"),
    (1114, 0, b"12000-01-01", "42P02"), (1186, 0, b"1 month", "42P02"), (25, 0, b"x" * 1_000_001, "54000"),
]  # fmt: skip


def test_what_cannot_be_read_has_the_state_that_postgresql_gives(secant_port, connection):
    for oid, form, raw, state in UNREAD:
        assert bound(secant_port, connection, oid, form, raw) == state, (oid, form, raw[:20])
    for oid, raw in ((701, b"NaN"), (1700, b"Infinity"), (1016, b"{{1,2},{3,4}}")):
        told = connection.pgconn.exec_params(QUESTION, [raw], [oid])
        assert told.error_field(67) == b"42P02"
    assert bound(secant_port, connection, 20, 0, b"7") == 7


def test_no_setting_changes_a_value_but_those_that_say_how_it_is_written(secant_port, connection):
    for setting in (
        "extra_float_digits = -15", "bytea_output = escape", "IntervalStyle = sql_standard", "xmlbinary = hex",
        "search_path = pg_temp", "row_security = off", "lc_numeric = 'C'",
    ):  # fmt: skip
        connection.execute(f"SET {setting}")
    connection.execute("CREATE TEMP TABLE float8 (x int); CREATE TEMP TABLE varchar (x int)")
    connection.execute("SET search_path = pg_temp, pg_catalog")
    third = struct.pack("!d", 1 / 3)
    assert bound(secant_port, connection, 701, 1, third) == 1 / 3
    assert bound(secant_port, connection, 1022, 1, array(701, third)) == [1 / 3]
    assert bound(secant_port, connection, 25, 0, b"x") == "x"
    span = bound(secant_port, connection, 1186, 0, b"1 day 02:00")
    assert span == datetime.timedelta(days=1, hours=2)
    connection.execute("SET DateStyle = 'German, DMY'")
    assert bound(secant_port, connection, 1082, 0, b"01.03.2025") == MARCH
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    moment = bound(secant_port, connection, 1184, 0, b"2025-03-01 00:00:00+00")
    assert moment == datetime.datetime(2025, 3, 1, 9)  # noqa: DTZ001


def test_a_value_that_cannot_be_read_fails_its_transaction(secant_port):
    with psycopg.connect(secant_port.address()) as connection:
        for _ in range(3):
            with pytest.raises(psycopg.errors.InvalidDatetimeFormat):
                connection.execute("SELECT count(*) FROM orders WHERE day > %s", ("then",))
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                connection.execute("SELECT count(*) FROM towns WHERE people > %s", (3,))
            connection.rollback()
        assert connection.execute("SELECT count(*) FROM towns WHERE people > %s", (3,)).fetchone()


def test_many_values_at_once(connection):
    values = [600_000 + n for n in range(900)]
    listed = ", ".join(["%s"] * len(values))
    text = f"SELECT count(*) AS n FROM towns WHERE people IN ({listed})"
    assert connection.execute(text, values).fetchone() == (1,)
    with connection.cursor() as cursor:  # a pipeline that binds often before it syncs
        cursor.executemany(
            "SELECT count(*) FROM towns WHERE people = %s", [(n,) for n in values[:50]]
        )


def test_drawn_bytes_are_a_value_or_an_error(secant_port, connection):
    draw = random.Random(7)
    oids = [*sorted({oid for oid, *_ in VALUES}), 114, 3802, 17, 869, 600, 2249, 1042, 2283]
    for _ in range(150):
        oid, form, raw = draw.choice(oids), draw.randrange(2), draw.randbytes(draw.randrange(24))
        bound(secant_port, connection, oid, form, raw if form else raw.replace(b"\0", b""))
    assert bound(secant_port, connection, 20, 0, b"7") == 7


# ── other languages; each question is about a public table, so that the answer is exact ───────────


@pytest.mark.long
@pytest.mark.parametrize("way", ["text", "binary"])
def test_jdbc_binds_each_type(secant_port, way):
    jar = next(CLIENTS.glob("postgresql-*.jar"), None)
    if jar is None:
        pytest.skip("the JDBC driver is not here: make setup-clients")
    source = CLIENTS.parent / "tests/clients/Bind.java"
    out = run([program("java"), "-cp", str(jar), str(source), way], secant_port)
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert len(lines) == 22
    assert {line.split(" ", 1)[0] for line in lines} == {"read"}, out.stdout


@pytest.mark.long
@pytest.mark.parametrize("client", ["pg", "postgres.js"])
def test_node_binds_each_type(secant_port, client):
    if not (CLIENTS / "node_modules" / "pg").exists():
        pytest.skip("node's packages are not here: make setup-clients")
    script = CLIENTS / "bind.js"  # packages are looked for beside the script
    script.write_text((CLIENTS.parent / "tests/clients/bind.js").read_text())
    out = run([program("node"), str(script), client], secant_port)
    assert out.returncode == 0, out.stderr
    lines = out.stdout.splitlines()
    assert len(lines) == 11
    assert {line.split(" ", 1)[0] for line in lines} == {"read"}, out.stdout
