"""Which queries there are, and under which policy each is asked in a profile.

In: the name of a profile. Out: the text of a query, a policy with the smoothness of that query, its
epsilon. `paper` and `paper-l1` take dates as months, as the authors had to; `native` takes them as
dates. Texts are data files beside this module; nothing is run here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.resources import files
from importlib.resources.abc import Traversable

from secant.errors import UsageError
from secant.policy.file import read_policy
from secant.policy.policy import Policy

QUERIES = (
    "b1_1", "b1_2", "b1_3", "b1_4", "b1_5", "b3", "b4", "b5", "b6", "b7", "b9", "b10", "b12_1",
    "b12_2", "b16", "b17", "b19",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to ask the queries."""

    name: str
    folders: tuple[str, ...]
    """Where the text of a query is looked for, in this order."""
    beta: Fraction | None = None
    """The smoothness that the authors took; None leaves it to Secant."""
    betas: Mapping[str, Fraction] = field(default_factory=dict)
    """Where they had to take another one."""

    def beta_of(self, query: str) -> Fraction | None:
        """Give the smoothness that is prescribed for a query."""
        return self.betas.get(query, self.beta)

    def epsilon_of(self, query: str) -> Fraction:
        """Give the privacy of one answer: 1, or what the authors' noise costs at b = 0.1."""
        beta = self.beta_of(query)
        return Fraction(1) if beta is None else 5 * (Fraction(1, 10) + beta)


_TENTH = Fraction(1, 10)
_STEEP = {"b16": Fraction(8, 10), "b19": Fraction(13, 10)}
PROFILES = (
    Profile("paper", ("paper",), _TENTH, {"b6": Fraction(16, 10), **_STEEP}),
    Profile("paper-l1", ("paper",), _TENTH, {"b6": Fraction(4, 10), **_STEEP}),
    Profile("native", ("native", "paper")),
)


def profile_of(name: str) -> Profile:
    """Give a profile by its name."""
    found = next((p for p in PROFILES if p.name == name), None)
    if found is None:
        known = ", ".join(p.name for p in PROFILES)
        raise UsageError("USE-001", f"there is no profile {name!r}", hint=f"there are: {known}")
    return found


def chosen_queries(names: str) -> tuple[str, ...]:
    """Read a list such as `b1_1,b6`; nothing means all.

    >>> chosen_queries("b6, b4")
    ('b4', 'b6')
    """
    wanted = [name.strip().lower() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in QUERIES]
    if unknown:
        known = ", ".join(QUERIES)
        raise UsageError("USE-001", f"there is no query {unknown[0]!r}", hint=f"there are: {known}")
    return tuple(name for name in QUERIES if not wanted or name in wanted)


def text_of(profile: Profile, query: str) -> str:
    """Give the text of a query in the form that the profile asks it in."""
    for folder in profile.folders:
        place = data_file("queries", folder, f"{query}.sql")
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise UsageError("USE-001", f"there is no query {query!r}")


def policy_of(profile: Profile, query: str) -> Policy:
    """Give the owner's policy, with the smoothness that the profile prescribes for the query."""
    text = data_file("policies", f"laud-{profile.name}.toml").read_text(encoding="utf-8")
    policy = read_policy(text)
    beta = profile.beta_of(query)
    if beta is None:
        return policy
    return replace(policy, protections=tuple(replace(p, beta=beta) for p in policy.protections))


def data_file(*parts: str) -> Traversable:
    """Find a file that was installed beside this module."""
    return files(__package__).joinpath(*parts)
