"""Where values move: what a stream needs so that its levels can share epsilon (stream.values, stream.both).

In: a stream under a protection of kind `cells` or `rows+cells`, and its bounded release. Out: a refusal, or the release
with public bounds: how far all numbers of one level move together, a unit of distance. Public facts only.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from secant.errors import Refused
from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.policy.policy import Protection
from secant.policy.streams import Stream
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import Certificate, Move, SmoothSensitivity
from secant.sensitivity.derivative.space import space_of


def check_values(
    stream: Stream,
    protections: tuple[Protection, ...],
    aggregate: n.Aggregate,
    arrival: n.Column | None,
) -> None:
    """Refuse what would let protected values decide which rows count when."""
    for protection in protections:
        if not protection.distance:
            continue
        if not stream.append_only:
            raise _refused(
                f"under {protection.name} a row has its values for good: a row that is changed would be read with "
                "several of them",
                "write append_only = true in the stream if rows are never changed or removed",
            )
        if arrival is not None and arrival.name in space_of(protection, scans(aggregate)).variables:
            raise _refused(
                f"{stream.arrival} is protected by {protection.name}, and whether a row came in time would show it",
                "name a public column of arrival, or leave `arrival` out",
            )
        read = [s.table.lower() for s in n.walk(aggregate) if isinstance(s, n.Scan)]
        hidden = [table for table in read if table in protection.distance]
        if protection.kind == "rows+cells" and len(hidden) > 1:
            raise _refused(
                f"under {protection.name} rows come and go, and a stream reads one of its tables, once",
                "ask of one protected table, with public tables beside it",
            )


def with_public_bounds(bounded: CertifiedRelease) -> CertifiedRelease:
    """Take the public cap of each curve for its bound; refuse a measure that has none."""

    def public(certificate: Certificate) -> Certificate:
        bounds = {c: _public(bounded, certificate, c, b) for c, b in certificate.bounds.items()}
        return replace(certificate, bounds=bounds)

    for call in bounded.release.exact.aggregations:
        if call.function not in ("count", "sum"):
            raise _refused(
                f"{call.function} of a block of steps does not follow from those of its steps",
                "use count, sum, avg or variance",
            )
    return replace(bounded, certificates=tuple(public(c) for c in bounded.certificates))


def _public(bounded: CertifiedRelease, certificate: Certificate, column: str, bound: Move) -> Move:
    if not isinstance(bound, SmoothSensitivity):
        return bound
    # A cap that rests on a range which nobody declared is a number, and useless.
    if bound.cap is None or not (bound.steady or bound.bounded):
        description = next(m.words for m in bounded.release.measures if m.column == column)
        raise _refused(
            f"under {certificate.protection} no public number bounds how fast the {description} moves",
            "declare ranges of its columns; multiply only what has one",
        )
    # Two databases are each rounded to the grid once (derivative.grid).
    return GlobalBound(Fraction(bound.cap) + 2 * bound.rounding)


def is_truthful(bounded: CertifiedRelease) -> bool:
    """Whether what is measured is what was asked for: no filter was softened beyond the steps that values move in."""
    return bounded.softened is None or bounded.softened.exact


def _refused(message: str, hint: str) -> Refused:
    return Refused("REF-108", message, hint=hint)
