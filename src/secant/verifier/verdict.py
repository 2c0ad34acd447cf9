"""The verdict on one release: its record, its documents, each step of its derivation, its noise and its charge.

In: plain values. Out: points, each of which holds, does not hold, or is not known. Verified means that all hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Any

from secant.verifier.claims import lost
from secant.verifier.derivation import Derivation
from secant.verifier.noise import Paid, check_charge, check_price, check_threshold, price_of
from secant.verifier.owners import Owners
from secant.verifier.plans import Node, NotKnown, Wrong, tables
from secant.verifier.rows import setting_of
from secant.verifier.streams import stream_price
from secant.verifier.weighed import check_weighed_threshold

FORMAT = 1
HOLDS, WRONG, UNKNOWN = "holds", "wrong", "not known"
QUESTION, STREAM = "question", "stream"
DOCUMENTS = ("text", "plan", "policy", "certificate")
_UNREADABLE = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError, RecursionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that was looked at."""

    about: str
    outcome: str
    """`holds`, `wrong` or `not known`."""
    words: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All points of one release."""

    points: tuple[Point, ...]

    @property
    def outcome(self) -> str:
        """Give `verified`, `wrong` or `not verified`."""
        outcomes = {p.outcome for p in self.points}
        if WRONG in outcomes:
            return "wrong"
        return "verified" if outcomes == {HOLDS} else "not verified"


def verify(record: Mapping[str, Any], bodies: Mapping[str, str]) -> Verdict:
    """Check a release by its record and by the documents that it names, given by kind."""
    points = [
        _point("records", partial(_check_digests, record, bodies)),
    ]
    if points[0].outcome == HOLDS:
        read = {kind: json.loads(bodies[kind]) for kind in ("policy", "certificate")}
        planned = read["certificate"].get("kind", QUESTION) in (QUESTION, STREAM)
        try:
            points += (_points if planned else _loose)(record, read["policy"], read["certificate"])
        except _UNREADABLE as error:
            points.append(_unreadable("documents", error))
    return Verdict(tuple(points))


def _point(about: str, work: Callable[[], str]) -> Point:
    try:
        return Point(about, HOLDS, work())
    except NotKnown as unknown:
        return Point(about, UNKNOWN, str(unknown))
    except Wrong as wrong:
        return Point(about, WRONG, str(wrong))
    except _UNREADABLE as error:
        return _unreadable(about, error)


def _unreadable(about: str, error: Exception) -> Point:
    return Point(about, WRONG, f"what is written does not fit together ({type(error).__name__})")


def _check_digests(record: Mapping[str, Any], bodies: Mapping[str, str]) -> str:
    papers = record.get("papers")
    if not papers:
        raise NotKnown("the release left no papers")
    for kind in DOCUMENTS:
        text = bodies.get(kind)
        if text is None:
            raise NotKnown(f"the document of its {kind} is not kept any more")
        if sha256(text.encode()).hexdigest() != papers[kind]:
            raise Wrong(f"the document of its {kind} is not the one that the record names")
        if json.loads(text)["format"] != FORMAT:
            raise NotKnown(f"the document of its {kind} is of another format")
    return "all documents are those that the record names"


def _points(
    record: Mapping[str, Any], policy: dict[str, Any], certificate: dict[str, Any]
) -> Iterator[Point]:
    protections = {p["name"]: p for p in policy["protections"]}
    yield _point("coverage", partial(_check_coverage, policy, certificate, protections))
    paid: dict[str, Paid] = dict.fromkeys(certificate["costs"], Paid())
    holds = True
    for release in certificate["releases"]:
        for certified in release["certificates"]:
            name = certified["protection"]
            about = f"{release['name']}, {name}"
            derivation = _derivation(release, certified, policy, certificate, protections)
            yield _point(f"derivation of {about}", partial(_derived, derivation))
            noise = _point(f"noise of {about}", partial(_noisy, derivation, paid))
            holds = holds and noise.outcome == HOLDS
            yield noise
    for name, (epsilon, delta) in certificate["costs"].items():
        price = Fraction(epsilon), Fraction(delta)
        if holds:
            yield _point(f"price of {name}", partial(_priced, name, paid[name], price))
            yield _point(f"charge of {name}", partial(_charged, name, paid[name], price, record))


def _loose(
    record: Mapping[str, Any], policy: dict[str, Any], certificate: dict[str, Any]
) -> Iterator[Point]:
    """Check a release that no plan describes."""
    paid = [Paid()]
    noise = _point("noise", partial(_noisy_claim, certificate, policy, paid))
    yield noise
    if noise.outcome == HOLDS:
        name = policy["protections"][0]["name"]
        price = Fraction(certificate["epsilon"]), Fraction(certificate["delta"])
        yield _point(f"price of {name}", partial(_priced, name, paid[0], price))
        yield _point(f"charge of {name}", partial(_charged, name, paid[0], price, record))
        if certificate["kind"] == "black box":
            yield _point(f"share of {name}", partial(_missed, certificate, record))


def _noisy_claim(certificate: dict[str, Any], policy: dict[str, Any], paid: list[Paid]) -> str:
    loss = lost(certificate)
    (protection,) = policy["protections"]
    if protection["personal"] is not None:
        raise NotKnown("units that give different amounts are not checked here")
    paid[0] = loss
    return f"{certificate['name']} loses {_loss_text(paid[0])} at most"


def _missed(certificate: dict[str, Any], record: Mapping[str, Any]) -> str:
    """The share of databases without a promise is accounted for like epsilon."""
    (charge,) = record["charges"]
    charged = Fraction(charge["event"]["gamma"]) if charge["event"]["kind"] == "random" else 0
    if charged < Fraction(certificate["facts"]["gamma"]["fraction"]):
        raise Wrong("the ledger was charged a smaller share of databases than may be missed")
    return f"{float(charged):.4g} of databases may be missed, and the ledger was charged that"


def _loss_text(paid: Paid) -> str:
    parts = [f"epsilon {float(paid.pure):.6g}"] if paid.pure or not paid.rho else []
    parts += [f"rho {float(paid.rho):.6g}"] * bool(paid.rho)
    parts += [f"delta {float(paid.keys):.3g} for keys"] * bool(paid.keys)
    return ", ".join(parts)


def _covered(policy: dict[str, Any], protection: dict[str, Any], read: set[str]) -> set[str]:
    """Give the tables whose rows a protection hides, of those that are read."""
    if protection["kind"] == "unit":
        return Owners.of(policy, protection).reached
    if protection["kind"] == "rows":
        named = protection["tables"]
        return read if named is None else set(named)
    raise NotKnown(f"protections of kind {protection['kind']} are not checked here")


def _check_coverage(
    policy: dict[str, Any], certificate: dict[str, Any], protections: dict[str, Any]
) -> str:
    """All protections hold together but for alternatives, and nothing is read that none of them covers."""
    nodes = tuple(certificate["nodes"])
    names = set(certificate["costs"])
    optional = set(policy["alternatives"])
    lacking = set(protections) - optional - names
    if lacking or not names or (optional and not names & optional):
        raise Wrong(f"no certificate speaks of {', '.join(sorted(lacking)) or 'any protection'}")
    for release in certificate["releases"]:
        if {c["protection"] for c in release["certificates"]} != names:
            raise Wrong(f"{release['name']} lacks a certificate for a protection")
    reads = [Node(nodes, at) for r in certificate["releases"] for at in r["statements"].values()]
    read = {table for node in reads for table in tables(node)}
    after = tables(Node(nodes, certificate["after"]))
    hidden: set[str] = set()
    for name in names:
        hidden |= _covered(policy, protections[name], read | after)
    if after & hidden:
        raise Wrong(f"{', '.join(sorted(after & hidden))} is read after the noise, without any")
    open_tables = (read | after) - hidden - set(policy["public"])
    if open_tables:
        raise Wrong(f"{', '.join(sorted(open_tables))} is neither protected nor public")
    return "every protection that holds has a certificate; nothing else that is hidden is read"


def _derivation(
    release: dict[str, Any],
    claim: dict[str, Any],
    policy: dict[str, Any],
    certificate: dict[str, Any],
    protections: dict[str, Any],
) -> Callable[[], Derivation]:
    def made() -> Derivation:
        nodes = tuple(certificate["nodes"])
        protection = protections[claim["protection"]]
        if protection["personal"] is not None:
            raise NotKnown("units that give different amounts are not checked here")
        statements = [Node(nodes, at) for at in release["statements"].values()]
        read = {table for node in statements for table in tables(node)}
        covered = frozenset(_covered(policy, protection, read))
        setting = setting_of(policy, protection, claim["claims"], set(covered))
        replaced = bool(protection["replace"])
        return Derivation(release, claim, certificate["steps"], nodes, setting, covered, replaced)

    return made


def _derived(derive: Callable[[], Derivation]) -> str:
    derivation = derive()
    release, certified = derivation.release, derivation.certificate
    rules = derivation.check()
    if rules != ["stability.public"]:
        for domain in release["keys"]:
            _check_keys(domain, derivation)
        if release["choice"] is not None:
            derivation.check_choice()
    bounds = ", ".join(
        f"{column} {bound.get('value', 'within limits')}"
        for column, bound in certified["bounds"].items()
    )
    return f"{', '.join(rules)} give {bounds}"


def _check_keys(domain: dict[str, Any], derivation: Derivation) -> None:
    """Which groups are shown must not tell: listed, read from tables that nobody hides, or chosen with noise."""
    if domain["kind"] in ("listed", "steps"):  # which steps are shown, the clock decides
        return
    if domain["kind"] == "looked up":
        if tables(Node(derivation.nodes, domain["node"])) & derivation.covered:
            raise Wrong("keys are looked up in a table that is hidden")
        return
    if domain["kind"] == "chosen" and derivation.release["choice"] is not None:
        return
    raise NotKnown(f"keys that are {domain['kind']} are not checked here")


def _noisy(derive: Callable[[], Derivation], paid: dict[str, Paid]) -> str:
    derivation = derive()
    release, certified = derivation.release, derivation.certificate
    total = Paid()
    for column, measure in {**release["measures"], **release["ranked"]}.items():
        squared = derivation.squared(column)
        if measure["noise"]["kind"] == "stream":
            total = total.plus(_stream(column, measure["noise"], certified, squared))
        else:
            span, extreme = derivation.span(column), measure.get("fraction") in ("0", "1")
            paid_here = price_of(
                column, measure["noise"], certified, squared, span, extreme=extreme
            )
            total = total.plus(paid_here)
    choice = release["choice"]
    if choice is not None:
        weighed = choice.get("weighed")
        if weighed:
            total = total.plus(check_weighed_threshold(choice, derivation.keys_of_unit()))
            square = Fraction(certified["squares"][weighed["column"]])
            total = total.plus(price_of(weighed["column"], weighed["noise"], certified, square))
        else:
            noise = release["measures"][choice["selector"]]["noise"]
            total = total.plus(check_threshold(choice, noise, certified))
    paid[certified["protection"]] = paid[certified["protection"]].plus(total)
    return f"it loses {_loss_text(total)} at most"


def _stream(
    column: str, noise: dict[str, Any], claim: dict[str, Any], squared: Fraction | None
) -> Paid:
    """All steps of a stream together; keys of one step are added up, so lengths over keys are none over steps."""
    bound = claim["bounds"][column]
    if noise["periods"]:
        raise NotKnown("limits that hold in every period anew are not checked here")
    if bound["kind"] != "global":
        raise NotKnown(f"streams with bounds of this kind are not checked here: {bound['kind']}")
    size = Fraction(bound["value"])
    if not size:
        return Paid()
    length = size**2 if squared is None or not noise["single"] else squared
    return stream_price(column, noise, size, length, max(1, int(claim["groups"])))


def _priced(name: str, paid: Paid, price: tuple[Fraction, Fraction]) -> str:
    check_price(name, paid, *price)
    return f"epsilon {float(price[0]):.6g}, delta {float(price[1]):.3g} cover it"


def _charged(
    name: str, paid: Paid, price: tuple[Fraction, Fraction], record: Mapping[str, Any]
) -> str:
    charges = [c for c in record["charges"] if c["protection"] == name]
    if not charges and not any(price):
        return "nothing was due"
    if len(charges) != 1:
        raise Wrong(f"{name} was charged {len(charges)} times")
    check_charge(name, paid, price, charges[0])
    return "the ledger was charged that much"
