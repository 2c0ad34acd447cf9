"""A derivation as a person follows it: numbered steps, each naming its rule and the steps it rests on."""

from __future__ import annotations

from secant.plan.show import show
from secant.sensitivity.certificate import Certificate, Refusal, Step
from secant.sensitivity.portfolio import CertifiedRelease


def derivation(certificate: Certificate) -> list[str]:
    """Give the steps of a certificate in the order in which they follow from each other."""
    lines: list[str] = []
    numbers: dict[tuple[str, str, str, tuple[int, ...]], int] = {}

    seen: dict[int, int] = {}  # by identity: steps that share premises are many more as a tree

    def visit(step: Step) -> int:
        if id(step) in seen:
            return seen[id(step)]
        premises = tuple(visit(p) for p in step.premises)
        key = (step.rule, step.place, step.value, premises)
        if key not in numbers:
            numbers[key] = len(numbers) + 1
            basis = f"  (from {', '.join(map(str, premises))})" if premises else ""
            lines.append(f"{numbers[key]:>3}. {step.rule:<25} {step.place}: {step.value}{basis}")
        seen[id(step)] = numbers[key]
        return numbers[key]

    for step in certificate.derivation:
        visit(step)
    return lines


def claims(certificate: Certificate) -> list[str]:
    """Give the keys that a bound rests on: what is checked before the release, and what the owner accepts."""
    return [
        f"{c.trust.value}: ({', '.join(c.columns)}) is a key of {c.table}"
        for c in certificate.claims
    ]


def refusal_line(refusal: Refusal) -> str:
    """Give one analysis's reason."""
    return f"{refusal.analysis:<12} {refusal.reason} ({refusal.rule})"


def summary(bounded: CertifiedRelease) -> list[str]:
    """Give what was enforced and every certificate of one release."""
    lines = [f"release {bounded.release.name}: enforced"]
    lines += [f"  - {note}" for note in bounded.release.notes] or ["  - nothing"]
    if bounded.softened is not None:
        lines.append("  softened query, which is released instead of the exact one:")
        lines += [f"    {line}" for line in show(bounded.softened.aggregate).splitlines()]
    for certificate in bounded.certificates:
        lines.append(f"  protection {certificate.protection}, proved by {certificate.analysis}:")
        lines += [f"  {line}" for line in derivation(certificate) + claims(certificate)]
    for refusal in bounded.tried:
        lines.append(f"  not used: {refusal_line(refusal)}")
    return lines
