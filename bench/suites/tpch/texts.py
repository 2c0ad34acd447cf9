"""Which queries there are, and the policy that they are asked under.

In: names of queries, perhaps the path of a policy. Out: texts and a policy. The texts and the
customers policy are data files beside this module; nothing is run here.
"""

from __future__ import annotations

from importlib.resources import files

from secant.errors import UsageError
from secant.policy.file import load_policy, read_policy
from secant.policy.policy import Policy

QUERIES = tuple(f"q{number:02}" for number in range(1, 23))


def chosen_queries(names: str) -> tuple[str, ...]:
    """Read a list such as `q1,q06`; nothing means all.

    >>> chosen_queries("q6, q01")
    ('q01', 'q06')
    """
    wanted = {_padded(name.strip().lower()) for name in names.split(",") if name.strip()}
    for name in sorted(wanted - set(QUERIES)):
        raise UsageError(
            "USE-001", f"there is no query {name!r}", hint=f"there are: {', '.join(QUERIES)}"
        )
    return tuple(name for name in QUERIES if not wanted or name in wanted)


def _padded(name: str) -> str:
    return f"q0{name[1:]}" if len(name) == 2 else name


def text_of(query: str) -> str:
    """Give the text of a query, with the specification's validation parameters."""
    place = files(__package__).joinpath("queries", f"{query}.sql")
    return place.read_text(encoding="utf-8")


def customers_text() -> str:
    """Give the policy that protects one customer, as its owner would write it."""
    place = files(__package__).joinpath("policies", "customers.toml")
    return place.read_text(encoding="utf-8")


def policy_of(file: str | None) -> Policy:
    """Read a policy, or the one that protects customers."""
    return read_policy(customers_text()) if file is None else load_policy(file)
