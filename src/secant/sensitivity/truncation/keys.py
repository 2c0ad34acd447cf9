"""How far one unit moves the weights by which private keys are chosen (truncation.keys).

In: a release whose keys are chosen by weighed units, and a certificate for its numbers. Out: the certificate with a
bound of the weights beside. Nothing is read or chosen here.
"""

from __future__ import annotations

from dataclasses import replace

from secant.plan import nodes as n
from secant.plan.rewrites.owners import unit_column
from secant.plan.rewrites.weighed_keys import PARTS, WeighedUnits
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import CannotBound, Certificate, Step
from secant.sensitivity.interface import Request
from secant.sensitivity.stability.rules import owned_by


def with_keys(certificate: Certificate, request: Request) -> Certificate:
    """Put the bound of the weights beside the others, where keys are chosen by them."""
    weighed = request.release.weighed
    if weighed is None:
        return certificate
    _check_owned(weighed, request)
    (call,) = weighed.units.aggregations
    description = (
        f"units weigh 1 over the root of their keys, of which {weighed.most} count at most"
    )
    value = (
        f"weights move by {float(weighed.size / PARTS):.6g}, by a length of 1 in all keys together"
    )
    step = Step("truncation.keys", description, value, (), call, weighed.size)
    return replace(
        certificate,
        bounds={**certificate.bounds, weighed.column: GlobalBound(weighed.size)},
        squares={**certificate.squares, weighed.column: weighed.squared},
        derivation=(*certificate.derivation, step),
    )


def _check_owned(weighed: WeighedUnits, request: Request) -> None:
    """Refuse unless each weighed row has the one unit by which keys are counted (I3)."""
    ownerships = request.facts.owners(request.protection)
    each = next(x for x in n.walk(weighed.units) if isinstance(x, n.Truncate))
    (owner,) = each.owner
    if unit_column(ownerships.of(each.input), ownerships) is None or not owned_by(
        ownerships, each.input, (owner,)
    ):
        reason, hint = "rows do not belong to single units", "group by the unit's key inside"
        raise CannotBound("truncation.keys", weighed.units, reason, hint)
