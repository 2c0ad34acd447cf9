"""`secant user`: users come and go, and secrets are shown once."""

import io
import json

import pytest
from clinic_users import policy_at

from secant.cli.program import run
from secant.service.logins import Logins
from secant.service.store import open_store
from secant.service.users import Users


@pytest.fixture
def policy(tmp_path):
    return policy_at(tmp_path)


@pytest.fixture
def command(policy, capsys):
    def called(*words, status=0):
        assert run(["user", *words, "-p", str(policy), "--json"]) == status
        told = capsys.readouterr()
        return json.loads(told.out or told.err)

    return called


@pytest.fixture
def users(policy):
    store = open_store(policy.with_suffix(".ledger"))
    yield Users(store)
    store.close()


def test_a_password_is_made_and_shown_once(command, users):
    told = command("add", "ada")
    assert Logins(users).login("ada", told["password"], way="test").role == "analyst"
    assert command("list") == [{"user": "ada", "role": "analyst"}]
    again = command("password", "ada")
    assert again["password"] != told["password"]
    assert Logins(users).login("ada", again["password"], way="test").name == "ada"


def test_a_password_is_read_from_standard_input(command, users, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    assert command("add", "olga", "--role", "owner", "--stdin")["password"] is None
    assert Logins(users).login("olga", "correct horse battery", way="test").role == "owner"


def test_tokens_are_made_and_revoked(command, users):
    command("add", "ada")
    told = command("token", "ada", "--days", "2", "--note", "dashboard")
    assert users.by_token(told["token"]).name == "ada"
    command("revoke", told["id"])
    assert users.tokens() == []


def test_everything_of_a_user_is_revoked(command, users):
    command("add", "ada")
    for _ in range(2):
        command("token", "ada")
    command("revoke-all", "ada")
    assert users.tokens() == []
    line = command("log")[0]
    assert (line["kind"], line["user"], line["way"]) == ("all revoked", "ada", "command line")
    assert line["actor"].startswith("os:")


def test_roles_change_and_users_go(command):
    command("add", "ada")
    command("role", "ada", "--role", "auditor")
    assert command("list") == [{"user": "ada", "role": "auditor"}]
    command("remove", "ada")
    assert command("list") == []
    kinds = [line["kind"] for line in command("log")]
    assert kinds == ["user removed", "role changed", "user added"]


@pytest.mark.parametrize(
    "words",
    [
        ("add",),
        ("add", "a b"),
        ("add", "ada", "--role", "admin"),
        ("remove", "nobody"),
        ("password", "nobody"),
        ("role", "ada"),
        ("token", "nobody"),
        ("revoke", "none"),
        ("revoke-all", "nobody"),
        ("conquer", "ada"),
    ],
)
def test_what_cannot_be_meant_is_told(command, words):
    assert command(*words, status=2)["error"]["code"] == "USE-001"
    assert command("list") == []


def test_the_screen_shows_what_json_tells(policy, capsys):
    for words, expected in (
        (["add", "ada"], "Password of ada"),
        (["list"], "analyst"),
        (["log"], "user added"),
    ):
        assert run(["user", *words, "-p", str(policy)]) == 0
        assert expected in capsys.readouterr().out
