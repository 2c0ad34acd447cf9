"""The papers of releases that no plan describes: statistics of loose values, and black boxes.

In: what is computed, what is claimed of it, and the noise; all public. Out: papers as a question in SQL leaves them,
so that the same program checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from secant.evidence import Evidence, document, software
from secant.noise.mechanisms.gaussian import NormalNoise
from secant.noise.mechanisms.laplace import GlobalNoise
from secant.noise.mechanisms.selection import Choice
from secant.noise.mechanisms.smooth import SmoothNoise
from secant.plan.serialize import plain_value


def loose_evidence(
    kind: str,
    name: str,
    facts: Mapping[str, Any],
    noise: object,
    protection: object,
    price: tuple[Fraction, Fraction],
) -> Evidence:
    """Write down what is computed (`kind`, `name`), its public facts, and the noise that goes on it.

    Nobody names a version of loose values.
    """
    told = {key: plain_value(value) for key, value in facts.items()}
    costs = {key: str(value) for key, value in zip(("epsilon", "delta"), price, strict=True)}
    documents = {
        "text": document({"text": f"{kind}: {name}", "parameters": None}),
        "plan": document({"kind": kind, "name": name, "facts": told}),
        "policy": document({"protections": [plain_value(protection)]}),
        "certificate": document(
            {"kind": kind, "name": name, "facts": told, "noise": _noise(noise), **costs}
        ),
    }
    return Evidence(documents, software(), "")


def _noise(noise: object) -> dict[str, str]:
    if isinstance(noise, GlobalNoise):
        return {"kind": "laplace", "size": str(noise.scale)}
    if isinstance(noise, NormalNoise):
        return {"kind": "normal", "size": str(noise.sigma)}
    if isinstance(noise, Choice):
        return {"kind": "choice", "sharpness": str(noise.sharpness)}
    if isinstance(noise, SmoothNoise):
        return {"kind": "smooth", "beta": str(noise.beta), "rate": str(noise.rate)}
    return {"kind": "other"}
