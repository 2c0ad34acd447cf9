"""The papers of a stream: its question, plan, policy, and the argument for all of its steps together.

In: a compiled stream and how its measures are released. Out: papers like those of a question, written before it is paid
for. The plan in them is the one that was bounded; the engine is asked for its steps, some at a time (stream.part).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

from secant.evidence import Evidence, document, software
from secant.noise.continual import Way
from secant.noise.continual.levels import Tree
from secant.plan.rewrites.rewrite import normalize
from secant.policy.policy import Policy
from secant.release.evidence import Writer, plan_document, policy_document, stepped_release
from secant.schema.catalog import Catalog
from secant.sql.bind import from_sql
from secant.streams.compiling import Compiled, charges

EPOCHS = 12
"""Epochs whose noise is written down: more steps than any stream comes to."""


def stream_evidence(
    compiled: Compiled, ways: Sequence[Way], policy: Policy, catalog: Catalog
) -> Evidence:
    """Write down what a stream releases, for ever."""
    stream, bounded = compiled.stream, compiled.bounded
    writer = Writer()
    measures = bounded.release.measures
    noise = {m.column: _noise(w, compiled) for m, w in zip(measures, ways, strict=True)}
    costs = dict.fromkeys((p.name for p in compiled.protections), (Fraction(0), Fraction(0)))
    for charge in charges(compiled, ways):
        costs[charge.protection] = Fraction(charge.epsilon, 10**9), Fraction(charge.delta, 10**18)
    release = stepped_release(bounded, noise, writer)
    documents = {
        "text": document({"text": stream.query, "parameters": None, "stream": stream.name}),
        "plan": plan_document(normalize(from_sql(stream.query, catalog))),
        "policy": policy_document(policy, catalog),
        "certificate": writer.document("stream", [release], compiled.post, costs, stream.epsilon),
    }
    return Evidence(documents, software(), "")


def _noise(way: Way, compiled: Compiled) -> dict[str, Any]:
    if way.law == "none":
        return {"kind": "none"}
    parts = []
    for stretch in islice(way.stretches(), EPOCHS):
        design = stretch.design
        kind = "tree" if isinstance(design, Tree) else "encoder"
        parts.append(
            {
                "design": kind,
                **design.to_dict(),
                "steps": stretch.length,
                "size": str(stretch.noise.size),
            }
        )
    return {
        "kind": "stream",
        "way": way.name,
        "law": way.law,
        "epochs": way.epochs,
        "parts": parts,
        "periods": compiled.periods is not None,
        "single": compiled.single,
    }
