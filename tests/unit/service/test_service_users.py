"""Users, tokens and logins: nobody gets in who should not, and nothing tells who exists."""

import base64
import hashlib
import hmac
import sqlite3
import threading

import pytest

from secant.errors import AccessError, ServiceError, UsageError
from secant.service import logins, settings, verifiers
from secant.service.audit_log import LINES_A_MINUTE
from secant.service.logins import FREE_FAILURES, Logins
from secant.service.store import open_store
from secant.service.users import ROLES, User, Users

PASSWORD = "correct horse battery staple"


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.time = 1_000_000.0

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
    yield Users(store, now=clock)
    store.close()


@pytest.fixture
def door(users):
    users.add("Ada", "analyst", PASSWORD)
    return Logins(users)


def refusal(call):
    with pytest.raises(AccessError) as caught:
        call()
    error = caught.value
    return error.code, error.message, error.hint, error.details


def test_a_store_begins_without_users(users):
    assert users.all() == []
    assert refusal(lambda: Logins(users).login("admin", "admin", way="test"))[0] == "AUT-001"


def test_a_user_logs_in_with_the_password_only(users, door):
    assert door.login("ada", PASSWORD, way="test") == User("Ada", "analyst")
    for wrong in ("", PASSWORD + " ", PASSWORD.upper(), "x" * 10_000, "\0", "é" * 20, "\ud800"):
        assert refusal(lambda wrong=wrong: door.login("ada", wrong, way="test"))[0] in (
            "AUT-001",
            "AUT-003",
        )


def test_unknown_names_are_refused_as_wrong_passwords_are(door):
    """The bug of the obvious library: an unknown user with an empty password."""
    for password in ("", " ", PASSWORD):
        known = refusal(lambda p=password: door.login("ada", p + "x", way="test"))
        unknown = refusal(lambda p=password: door.login("eve", p, way="test"))
        assert known == unknown


def test_unknown_names_lock_out_as_known_ones_do(door, clock):
    said = {
        name: [refusal(lambda n=name: door.login(n, "wrong", way="test")) for _ in range(12)]
        for name in ("ada", "eve")
    }
    assert said["ada"] == said["eve"]
    assert [line[0] for line in said["ada"]] == ["AUT-001"] * FREE_FAILURES + ["AUT-003"] * 7
    assert refusal(lambda: door.login("ada", PASSWORD, way="test"))[0] == "AUT-003"
    clock.time += 2
    assert door.login("ada", PASSWORD, way="test").name == "Ada"
    assert refusal(lambda: door.login("ada", "wrong", way="test"))[0] == "AUT-001"


def test_waiting_doubles_up_to_its_end():
    waits = [logins._waiting(times) for times in range(60)]
    assert waits[:FREE_FAILURES] == [0] * FREE_FAILURES
    assert waits[FREE_FAILURES : FREE_FAILURES + 3] == [1, 2, 4]
    assert waits[-1] == logins.LONGEST_WAIT


def test_attempts_at_the_same_time_do_not_get_around_the_lock(users):
    users.add("ada", "analyst", PASSWORD)
    door = Logins(users, settings.Logins(waiting_of_address=20))
    codes = []

    def attempt():
        codes.append(refusal(lambda: door.login("ada", "wrong", way="test"))[0])

    threads = [threading.Thread(target=attempt) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes.count("AUT-001") == FREE_FAILURES
    assert codes.count("AUT-003") == 20 - FREE_FAILURES


def test_names_that_are_tried_do_not_fill_the_disk(users, door, monkeypatch):
    monkeypatch.setattr(logins, "_MOST_NAMES", 5)
    for _ in range(3):
        refusal(lambda: door.login("ada", "wrong", way="test"))
    for number in range(20):
        refusal(lambda n=number: door.login(f"name{n}", "", way="test"))
    with users.store.reading() as rows:
        kept = dict(rows.all("SELECT key, times FROM failures"))
    assert len(kept) <= 5
    assert kept[users.failures_key("ada", "")] == 3, "who fails often is remembered longest"
    assert kept[users.address_key("")] == 23


def scram(password, exchange, *, name=b"ada"):
    """Play the client's side of a SCRAM exchange; give the messages and the proof."""
    v = exchange.verifier
    message = b"n=%s,r=abc,r=abcdef,s=%s,i=%d,c=biws,r=abcdef" % (
        name, base64.b64encode(v.salt), v.iterations,
    )  # fmt: skip
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), v.salt, v.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    return message, proof, hmac.digest(server_key, message, "sha256")


def test_a_scram_exchange_admits_the_password_and_proves_the_server(door):
    exchange = door.begin("ada")
    message, proof, expected = scram(PASSWORD, exchange)
    user, signature = door.finish(exchange, message, proof, way="test")
    assert (user.name, signature) == ("Ada", expected)


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD])
def test_a_scram_exchange_admits_no_unknown_name(door, password):
    exchange = door.begin("eve")
    message, proof, _ = scram(password, exchange)
    for sent in (proof, b"", bytes(32), proof[:-1]):
        code = refusal(lambda s=sent: door.finish(exchange, message, s, way="test"))[0]
        assert code in ("AUT-001", "AUT-003")


def test_a_verifier_of_nobody_looks_like_one_of_somebody(door):
    nobody, again, other = (door.begin(name).verifier for name in ("eve", "EVE", "mallory"))
    somebody = door.begin("ada").verifier
    assert nobody.salt == again.salt != other.salt
    assert len(nobody.salt) == len(somebody.salt)
    assert nobody.iterations == somebody.iterations


def test_a_client_that_only_begins_is_not_counted(door):
    """psql begins without a password, and begins again when it has asked for one."""
    for _ in range(50):
        door.begin("ada")
    assert door.login("ada", PASSWORD, way="test").name == "Ada"


@pytest.mark.parametrize(
    "password",
    ["", "short", "aaaaaaaaaaaaaaaa", "x" * 201, "pässwörter-sind-lang", "tab\tbed\tcab\tdab"],
)
def test_passwords_that_are_refused(users, password):
    with pytest.raises(UsageError):
        users.add("ada", "analyst", password)
    assert users.all() == []


@pytest.mark.parametrize("name", ["", " ada", "a b", "-ada", "a" * 64, "ada\n", "<b>", "ädä"])
def test_names_that_are_refused(users, name):
    with pytest.raises(UsageError):
        users.add(name, "analyst", PASSWORD)


def test_a_name_is_taken_in_every_case_of_letters(users):
    users.add("Ada", "analyst", PASSWORD)
    with pytest.raises(UsageError, match="already"):
        users.add("aDA", "owner", PASSWORD)
    with pytest.raises(UsageError, match="role"):
        users.add("bob", "admin", PASSWORD)


def test_a_password_made_for_a_user_is_accepted(users):
    made = verifiers.generated_password()
    users.add("bob", "auditor", made)
    assert Logins(users).login("bob", made, way="test").role == "auditor"


def test_a_token_is_good_until_it_ends(users, door, clock):
    token, told = users.make_token(User("Ada", "analyst"), seconds=60, note="dashboard")
    assert token.startswith("secant_")
    assert users.by_token(token) == User("Ada", "analyst")
    assert [t.note for t in users.tokens("ADA")] == ["dashboard"]
    clock.time += 61
    assert refusal(lambda: users.by_token(token))[0] == "AUT-001"
    assert users.tokens() == []
    token, told = users.make_token(User("Ada", "analyst"), seconds=60)
    users.revoke(told.token_id)
    assert refusal(lambda: users.by_token(token))[0] == "AUT-001"
    for wrong in ("", "secant_", token + "x", token[:-1], told.token_id, "\ud800"):
        assert refusal(lambda w=wrong: users.by_token(w))[0] == "AUT-001"


def test_a_token_has_the_role_of_now_and_ends_with_its_user(users, door):
    token, _ = users.make_token(User("Ada", "analyst"), seconds=60)
    users.set_role("ada", "auditor")
    assert users.by_token(token).role == "auditor"
    users.remove("ada")
    assert refusal(lambda: users.by_token(token))[0] == "AUT-001"
    users.add("Ada", "analyst", PASSWORD)
    assert refusal(lambda: users.by_token(token))[0] == "AUT-001"


def test_another_password_ends_all_tokens_and_lets_in_who_was_locked_out(users, door):
    session, _ = users.make_token(User("Ada", "analyst"), seconds=60, kind="session")
    token, _ = users.make_token(User("Ada", "analyst"), seconds=60)
    for _ in range(FREE_FAILURES):
        refusal(lambda: door.login("ada", "wrong", way="test"))
    users.set_password("ADA", PASSWORD + "2")
    assert refusal(lambda: users.by_token(session))[0] == "AUT-001"
    assert refusal(lambda: users.by_token(token))[0] == "AUT-001"
    assert door.login("ada", PASSWORD + "2", way="test").name == "Ada"
    assert refusal(lambda: door.login("ada", PASSWORD, way="test"))[0] == "AUT-001"


def test_the_log_tells_logins_and_refusals_and_no_secret(users, door):
    door.login("ada", PASSWORD, way="HTTP")
    refusal(lambda: door.login("ada", "wrong password", way="HTTP"))
    refusal(lambda: door.login("my secret by mistake", "", way="HTTP"))
    refusal(lambda: users.by_token("secant_guess"))
    kinds = [entry.kind for entry in users.log()]
    assert sorted(kinds) == [
        "login",
        "login refused",
        "login refused",
        "token refused",
        "user added",
    ]
    text = str(users.log())
    for secret in (PASSWORD, "wrong password", "my secret", "secant_guess"):
        assert secret not in text


def test_strangers_cannot_fill_the_log(users, clock):
    for _ in range(3 * LINES_A_MINUTE):
        refusal(lambda: users.by_token("secant_guess"))
    assert len(users.log()) == LINES_A_MINUTE
    clock.time += 61
    refusal(lambda: users.by_token("secant_guess"))
    assert f"and {2 * LINES_A_MINUTE} more" in [entry.about for entry in users.log()]


def test_nothing_secret_is_in_the_file(tmp_path):
    store = open_store(tmp_path / "shop.ledger")
    users = Users(store)
    token, _ = users.make_token(users.add("ada", "owner", PASSWORD), seconds=60)
    store.close()
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o077 == 0
        raw = file.read_bytes()
        assert PASSWORD.encode() not in raw
        assert token.encode() not in raw
        assert token.removeprefix("secant_").encode() not in raw


def test_a_file_that_is_no_store_is_refused(tmp_path):
    place = tmp_path / "shop.ledger.service"
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    with pytest.raises(ServiceError, match="no store of users"):
        open_store(tmp_path / "shop.ledger")
    place.write_bytes(b"garbage" * 1000)
    with pytest.raises(ServiceError) as caught:
        open_store(tmp_path / "shop.ledger")
    assert caught.value.code == "SRV-005"


def test_a_planted_fault_lets_an_unknown_name_in(users, monkeypatch):
    """If nobody's verifier came from the empty password, the tests above would see it: here it does."""
    monkeypatch.setattr(logins, "nobodys", lambda salt: verifiers.Verifier(*_empty_verifier()))
    door = Logins(users)
    exchange = door.begin("eve")
    message, proof, _ = scram("", exchange)
    assert verifiers.signature_for(exchange.verifier, message, proof) is not None
    # and still nobody is admitted: there is no user behind the exchange
    assert refusal(lambda: door.finish(exchange, message, proof, way="test"))[0] == "AUT-001"


def _empty_verifier():
    salted = hashlib.pbkdf2_hmac("sha256", b"", b"0" * 16, 4096)
    client = hmac.digest(salted, b"Client Key", "sha256")
    return (
        b"0" * 16,
        4096,
        hashlib.sha256(client).digest(),
        hmac.digest(salted, b"Server Key", "sha256"),
    )


def test_every_role_is_listed():
    assert ROLES == ("owner", "analyst", "auditor")
    with pytest.raises(AssertionError):
        User("x", "root")
