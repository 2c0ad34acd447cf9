"""`secant user`: who may ask the service, in which role, and tokens for programs.

In: the policy, beside whose ledger users are kept. Out: a password or a token, shown this once.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from secant.cli.options import Json, PolicyPath, flag, named, policy_file, refuse_beside

Action = Literal[
    "add", "list", "remove", "password", "role", "token", "revoke", "revoke-all", "log"
]
What = Annotated[
    Action,
    Parameter(
        help="add, list, remove, password, role; token and revoke for programs; revoke-all ends everything "
        "that a user is logged in by; log shows the audit log."
    ),
]
USUAL_DAYS = 90
OBEYED = {
    "add": ("--role", "--stdin"),
    "password": ("--stdin",),
    "role": ("--role",),
    "token": ("--days", "--note"),
}
"""Which of its options an action obeys; the others have none."""
Name = Annotated[str, Parameter(help="The user's name; for revoke, the id of the token.")]
Role = Annotated[str | None, named("--role", "owner, analyst or auditor.", "ROLE")]
Stdin = Annotated[
    bool,
    flag("--stdin", "Read the password from standard input; else one is made."),
]
Days = Annotated[
    float | None,
    named("--days", f"How many days a token lasts; by default {USUAL_DAYS}.", "DAYS"),
]
Note = Annotated[str | None, named("--note", "What a token is for.", "TEXT")]


def user(
    action: What,
    name: Name = "",
    /,
    *,
    role: Role = None,
    stdin: Stdin = False,
    days: Days = None,
    note: Note = None,
    policy: PolicyPath = None,
    json: Json = False,
) -> int:
    """Add, list and remove users of the service; make and revoke tokens."""
    import getpass

    from secant.cli import show
    from secant.errors import UsageError
    from secant.ledger.opening import ledger_place
    from secant.policy.file import load_policy
    from secant.service.origin import Origin
    from secant.service.store import open_store
    from secant.service.users import Users
    from secant.service.views import audit_view, token_view

    options = {"--role": role, "--stdin": stdin, "--days": days, "--note": note}
    obeyed = OBEYED.get(action, ())
    refuse_beside(action, {o: value for o, value in options.items() if o not in obeyed})
    if bool(name) == (action in ("list", "log")):
        reason = "a name means nothing here" if name else "whose? a name is missing"
        hint = f"secant user {action}" + ("" if name else " NAME")
        raise UsageError("USE-001", reason, hint=hint)
    if action == "role" and role is None:
        raise UsageError("USE-001", "--role is missing")
    store = open_store(ledger_place(load_policy(policy_file(policy))))
    try:
        users = Users(store)
        by = Origin(actor=f"os:{getpass.getuser()}", way="command line")
        output: object
        if action in ("add", "password"):
            password = _password_given() if stdin else _random_password()
            if action == "add":
                users.add(name, role or "analyst", password, by=by)
            else:
                users.set_password(name, password, by=by)
            output = {"user": name, "password": None if stdin else password}
            line = f"{name}: done" if stdin else f"Password of {name}, shown this once: {password}"
        elif action == "token":
            entry = users.found(name)
            if entry is None:
                raise UsageError("USE-001", "there is no such user", hint="see `secant user list`")
            seconds = (USUAL_DAYS if days is None else days) * 86_400
            token, record = users.make_token(entry[0], seconds=seconds, note=note or "", by=by)
            output = {**token_view(record), "token": token}
            line = f"Token {record.token_id} of {name}, shown this once: {token}"
        elif action == "list":
            output = [{"user": u.name, "role": u.role} for u in users.all()]
            line = "\n".join(f"{u.role:8} {u.name}" for u in users.all()) or "no users"
        elif action == "log":
            output = audit_view(users.log())
            line = "\n".join(
                f"{e.time:%Y-%m-%d %H:%M:%S}  {e.kind:18} {e.who or '-':12} by {e.origin.actor or '-':12} "
                f"from {e.origin.address or e.origin.way or '-':15} token {e.origin.token_id or '-':12} {e.about}"
                for e in users.log()
            )
        else:
            if action == "remove":
                users.remove(name, by=by)
            elif action == "revoke":
                users.revoke(name, by=by)
            elif action == "revoke-all":
                users.revoke_all(name, by=by)
            else:
                users.set_role(name, str(role), by=by)
            output, line = {"user": name}, f"{name}: done"
    finally:
        store.close()
    if json:
        show.print_json(output)
    else:
        show.say(line)
    return 0


def _password_given() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _random_password() -> str:
    from secant.service.verifiers import generated_password

    return generated_password()
