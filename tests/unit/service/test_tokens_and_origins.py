"""What a stolen token can leave behind, whom wrong passwords lock out, and what the audit log says of both."""

import sqlite3

import pytest

from secant.errors import AccessError, UsageError
from secant.service import logins, tokens
from secant.service.audit_log import LINES_A_MINUTE
from secant.service.logins import ADDRESS_FAILURES, ADDRESS_SECONDS, FREE_FAILURES, Logins
from secant.service.origin import Origin, network_of
from secant.service.store import open_store
from secant.service.users import LOGOUT, User, Users

PASSWORD = "correct horse battery staple"
ADA = User("Ada", "analyst")
DAY = 86_400


class Clock:
    """A clock that goes when it is told to."""

    time = 1_000_000.0

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def users(request, tmp_path, clock):
    if request.param == "sqlite":
        place = tmp_path / "shop.ledger"
    else:
        server = request.getfixturevalue("postgres_server")
        place = server.address(server.create_database())
    store = open_store(place)
    found = Users(store, now=clock)
    found.add("Ada", "analyst", PASSWORD)
    found.add("olga", "owner", PASSWORD)
    yield found
    store.close()


def code(call):
    with pytest.raises((AccessError, UsageError)) as caught:
        call()
    return caught.value.code


def is_good(users, token):
    try:
        return bool(users.by_token(token))
    except AccessError:
        return False


# ── tokens that tokens make ──────────────────────────────────────────────────────────────────────


def family(users, *, holder=ADA, actor="Ada"):
    """Make a token, its child and its grandchild; give each with what is known of it."""
    by = Origin(actor=actor)
    found = [users.make_token(holder, seconds=DAY, by=by)]
    for _ in range(2):
        found.append(users.make_token(ADA, seconds=366 * DAY, parent=found[-1][1].token_id, by=by))
    return found


def test_a_child_lives_no_longer_than_its_parent(users, clock):
    parent, child, grandchild = family(users)
    assert parent[1].expires == child[1].expires == grandchild[1].expires
    clock.time += DAY + 1
    assert not any(is_good(users, token) for token, _ in (parent, child, grandchild))


def test_what_a_token_made_ends_with_it(users):
    parent, child, grandchild = family(users)
    other, _ = users.make_token(ADA, seconds=DAY)
    users.revoke(parent[1].token_id)
    assert not any(is_good(users, token) for token, _ in (parent, child, grandchild))
    assert is_good(users, other)
    late = parent[1].token_id
    assert code(lambda: users.make_token(ADA, seconds=60, parent=late)) == "AUT-001"


@pytest.mark.parametrize("end", ["set_password", "revoke_all", "remove"])
def test_all_that_a_user_holds_or_made_ends_together(users, end):
    """The thief of an owner's token made one for somebody else: it ends with the owner's, too."""
    held = [token for token, _ in family(users)]
    made, _ = users.make_token(ADA, seconds=DAY, by=Origin(actor="olga"))
    owners = family(users, holder=User("olga", "owner"), actor="olga")
    more = (PASSWORD + "2",) if end == "set_password" else ()
    getattr(users, end)("olga", *more)
    assert not any(is_good(users, token) for token in (made, *(token for token, _ in owners)))
    assert all(is_good(users, token) for token in held), "those of others stay"
    getattr(users, end)("ada", *more)
    assert not any(is_good(users, token) for token in held)


def test_tokens_of_one_user_have_an_end(users, monkeypatch):
    monkeypatch.setattr(tokens, "MOST_TOKENS", 3)
    first, _ = users.make_token(ADA, seconds=60, kind="session")
    for _ in range(3):
        users.make_token(ADA, seconds=60, kind="session")
        users.make_token(ADA, seconds=60)
    assert not is_good(users, first), "the oldest session makes room"
    assert code(lambda: users.make_token(ADA, seconds=60)) == "USE-001"
    assert len(users.tokens("ada")) == 6


def test_who_stays_connected_ends_with_all_else(users, clock):
    """A connection of the PostgreSQL port carries no token: it is held against the store by its user."""
    door = Logins(users)
    user = door.login("ada", PASSWORD, way="test")
    users.check_still(user)
    users.check_still(ADA)  # each request of this one proves anew who sends it
    clock.time += 1
    users.revoke_all("ada")
    assert code(lambda: users.check_still(user)) == "AUT-001"
    clock.time += 1
    user = door.login("ada", PASSWORD, way="test")
    users.check_still(user)
    users.set_role("ada", "auditor")
    assert code(lambda: users.check_still(user)) == "AUT-001"


# ── whom failures lock out ───────────────────────────────────────────────────────────────────────


def fail(door, name, address, times=1):
    return [
        code(lambda: door.login(name, "wrong", way="HTTP", address=address)) for _ in range(times)
    ]


def test_wrong_passwords_lock_out_their_own_address_only(users):
    door = Logins(users)
    assert fail(door, "ada", "10.0.0.66", FREE_FAILURES + 1)[-1] == "AUT-003"
    attempt = lambda address: door.login("ada", PASSWORD, way="HTTP", address=address)  # noqa: E731
    assert attempt("10.0.0.1").name == "Ada"
    assert code(lambda: attempt("10.0.0.66")) == "AUT-003"
    exchange = door.begin("ada")
    refused = lambda: door.finish(exchange, b"", b"", way="postgres", address="10.0.0.1")  # noqa: E731
    assert code(refused) == "AUT-001", "looked at, not locked out"
    assert attempt("10.0.0.1").name == "Ada"


def test_an_address_that_tries_many_names_is_slowed_down(users, clock, monkeypatch):
    monkeypatch.setattr(logins, "matches", lambda verifier, password: password == PASSWORD)
    door = Logins(users)
    for number in range(ADDRESS_FAILURES):
        assert fail(door, f"name{number}", "10.0.0.66") == ["AUT-001"]
    assert fail(door, "another", "10.0.0.66") == ["AUT-003"]
    assert fail(door, "another", "10.0.0.1") == ["AUT-001"]
    clock.time += ADDRESS_SECONDS
    assert fail(door, "another", "10.0.0.66") == ["AUT-001"]
    assert fail(door, "another", "10.0.0.66") == ["AUT-003"]


def test_who_logs_in_rightly_does_not_use_up_an_address(users, monkeypatch):
    monkeypatch.setattr(logins, "ADDRESS_FAILURES", 3)
    monkeypatch.setattr(logins, "matches", lambda verifier, password: password == PASSWORD)
    door = Logins(users)
    for _ in range(10):
        assert door.login("ada", PASSWORD, way="HTTP", address="10.0.0.1").name == "Ada"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8::1", "2001:db8::2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", "unix", False),
    ],
)
def test_what_counts_as_one_address(one, other, same):
    assert (network_of(one) == network_of(other)) is same


# ── what the log says ────────────────────────────────────────────────────────────────────────────


def test_the_log_tells_the_owner_from_a_thief(users):
    mine = Origin("Ada", "10.0.0.1", "aaaaaaaaaaaa", "r1", "console")
    thief = Origin("Ada", "203.0.113.9", "bbbbbbbbbbbb", "r2", "HTTP")
    owner = Origin("olga", "10.0.0.2", "cccccccccccc", "r3", "HTTP")
    for by in (mine, thief, owner):
        users.set_password("ada", PASSWORD + by.request_id, by=by)
    changed = [line for line in users.log() if line.kind == "password changed"]
    assert {line.origin for line in changed} == {mine, thief, owner}
    assert {line.who for line in changed} == {"ada"}


def test_every_change_names_who_made_it(users):
    by = Origin("olga", "10.0.0.2", "cccccccccccc", "r3", "HTTP")
    users.add("carl", "analyst", PASSWORD, by=by)
    users.set_role("carl", "auditor", by=by)
    _, told = users.make_token(User("carl", "auditor"), seconds=60, by=by)
    users.revoke(told.token_id, by=by)
    users.revoke_all("carl", by=by)
    users.set_password("carl", PASSWORD + "2", by=by)
    users.remove("carl", by=by)
    told = [line for line in users.log() if line.who == "carl"]
    assert len(told) == 7
    assert {line.origin for line in told} == {by}


def test_logins_are_logged_with_their_address(users, caplog):
    caplog.set_level("INFO", "secant.service")
    door = Logins(users)
    by = Origin(request_id="r7")
    door.login("ada", PASSWORD, way="HTTP", address="10.0.0.1", by=by)
    code(lambda: door.login("ada", "wrong", way="HTTP", address="203.0.113.9", by=by))
    code(lambda: users.holder_of("secant_guess", by=Origin(address="203.0.113.9", way="HTTP")))
    found = {line.kind: line.origin for line in users.log()}
    assert found["login"] == Origin("Ada", "10.0.0.1", "", "r7", "HTTP")
    assert found["login refused"] == Origin("", "203.0.113.9", "", "r7", "HTTP")
    assert found["token refused"].address == "203.0.113.9"
    assert "login refused user=Ada by=- from=203.0.113.9 way=HTTP token=- request=r7" in caplog.text


def test_many_logins_do_not_fill_the_log_and_hide_nothing_else(users, monkeypatch):
    monkeypatch.setattr(logins, "matches", lambda verifier, password: password == PASSWORD)
    door = Logins(users)
    for _ in range(LINES_A_MINUTE + 20):
        user = door.login("ada", PASSWORD, way="HTTP", address="10.0.0.1")
        _, session = users.make_token(user, seconds=60, kind="session")
        users.revoke(session.token_id, what=LOGOUT)
    users.make_token(user, seconds=60)
    kinds = [line.kind for line in users.log()]
    for kind in ("login", "session made", LOGOUT):
        assert kinds.count(kind) == LINES_A_MINUTE
    assert kinds.count("token made") == 1


# ── stores of before ─────────────────────────────────────────────────────────────────────────────


def test_a_store_of_version_1_is_brought_up(tmp_path):
    place = tmp_path / "shop.ledger"
    store = open_store(place)
    users = Users(store)
    token, _ = users.make_token(users.add("ada", "owner", PASSWORD), seconds=60)
    store.close()
    _set_back(tmp_path / "shop.ledger.service")
    store = open_store(place)
    users = Users(store)
    assert users.by_token(token) == User("ada", "owner")
    assert Logins(users).login("ada", PASSWORD, way="test", address="10.0.0.1").name == "ada"
    assert users.tokens()[0].parent == ""
    with store.reading() as rows:
        kept = dict(rows.all("SELECT id, charged FROM questions"))
        sizes = {row[0] for row in rows.all("SELECT size FROM questions")}
    assert kept == {"answered": 1, "public": 0, "refused": 0, "failed": 1}
    assert sizes == {2}
    store.close()


def _set_back(file):
    """Give a store the tables of version 1, with a question of each kind."""
    with sqlite3.connect(file) as connection:
        names = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        ]
        for name in names:
            if name.startswith(
                (
                    "tokens_by",
                    "questions_of",
                    "questions_by_charge",
                    "answers_by_charge",
                    "requests_of",
                )
            ):
                connection.execute(f"DROP INDEX {name}")
        for table, columns in (
            ("users", ["ended"]), ("tokens", ["parent", "maker"]), ("failures", ["who"]),
            ("audit", ["actor", "address", "token", "request", "way"]), ("questions", ["charged", "size"]),
            ("answers", ["charged", "size"]), ("requests", ["size"]),
        ):  # fmt: skip
            for column in columns:
                connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        for name, outcome, release in (
            ("answered", "answered", "r"), ("public", "answered", ""),
            ("refused", "refused", ""), ("failed", "failed", ""),
        ):  # fmt: skip
            row = (name, 1.0, "ada", "{}", outcome, release)
            connection.execute("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("UPDATE meta SET value = '1' WHERE name = 'version'")
