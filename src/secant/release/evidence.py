"""The papers of a release: question, plan, policy, and the whole argument for its privacy, for who checks it later.

In: a job, settled and not yet paid. Out: documents of public values only. What is written is what is done: the plans
are those that the statements are printed from, the noise is that which will be drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.errors import UsageError
from secant.evidence import Evidence, document, software
from secant.noise.limited import ClippedNoise, LimitToChoose, RaceNoise
from secant.noise.measure_noise import LawfulNoise, Noise
from secant.noise.query_plan import Reading, keys_name, numbered
from secant.noise.ranked import RankNoise, statement_of
from secant.noise.running import RunningNoise
from secant.noise.smooth import SurveyNoise
from secant.plan import nodes as n
from secant.plan.facts.domains import Chosen, Domain, Listed, Looked, Open
from secant.plan.serialize import SerializedPlans, plain_value
from secant.policy.policy import Policy, Protection
from secant.release.release_plan import ReleasePlan
from secant.schema.catalog import Catalog
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import (
    Certificate,
    ClippedContribution,
    Move,
    SmoothSensitivity,
    Step,
    Surveyed,
)
from secant.sql.parameters import Parameters

_POLICY = ("tables", "protections", "public", "alternatives", "accept")
"""What of a policy a proof may rest on. Not where data and ledger are: an address may hold a password."""


def evidence_of(
    question: tuple[str, Parameters | None],
    plan: n.Relation,
    job: ReleasePlan,
    facts: tuple[Policy, Catalog],
    protections: tuple[Protection, ...],
    data: str,
) -> Evidence:
    """Write down what a release does, before it is paid for; `data` names the version of the data."""
    text, parameters = question
    values = None if parameters is None else plain_value(parameters)
    documents = {
        "text": document({"text": text, "parameters": values}),
        "plan": plan_document(plan),
        "policy": policy_document(*facts),
        "certificate": _certificate_document(job, protections),
    }
    return Evidence(documents, software(), data)


def read_parameters(data: Any) -> Parameters | None:
    """Read the values of placeholders again, as they were given."""
    if isinstance(data, dict):
        return {name: _read_value(value) for name, value in data["map"]}
    return None if data is None else [_read_value(value) for value in data]


def _read_value(data: Any) -> object:
    if not isinstance(data, dict):
        return data
    ((kind, value),) = data.items()
    if kind == "double":
        return float.fromhex(value)
    if kind == "decimal":
        return Decimal(value)
    if kind == "time":
        return (datetime if "T" in value else date).fromisoformat(value)
    raise UsageError("USE-001", f"a parameter that is a {kind} cannot be read again")


def plan_document(plan: n.Relation) -> str:
    """Write a normalized plan."""
    plans = SerializedPlans()
    root = plans.place(plan)
    return document({"root": root, "nodes": plans.nodes})


def policy_document(policy: Policy, catalog: Catalog) -> str:
    """Write what a proof may rest on: what the owner declares, and which keys the engine keeps."""
    unique = {
        name: sorted([c.lower() for c in columns] for columns in table.unique)
        for name, table in catalog.tables.items()
        if table.unique
    }
    declared = {name: plain_value(getattr(policy, name)) for name in _POLICY}
    return document({**declared, "unique": unique})


@dataclass(slots=True)
class Writer:
    """One list of nodes and one of steps, for all that a certificate rests on."""

    plans: SerializedPlans = field(default_factory=SerializedPlans)
    steps: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[int, tuple[Step, int]] = field(default_factory=dict)

    def step(self, step: Step) -> int:
        """Give the place of a step; those that it rests on stand before it."""
        if id(step) not in self.seen:
            premises = [self.step(p) for p in step.premises]
            self.steps.append(
                {
                    "rule": step.rule,
                    "place": step.place,
                    "value": step.value,
                    "premises": premises,
                    "node": None if step.node is None else self.plans.place(step.node),
                    "bound": None if step.bound is None else str(step.bound),
                }
            )
            self.seen[id(step)] = step, len(self.steps) - 1
        return self.seen[id(step)][1]

    def document(
        self,
        kind: str,
        releases: list[dict[str, Any]],
        after: n.Relation,
        costs: Mapping[str, tuple[Fraction, Fraction]],
        epsilon: Fraction,
    ) -> str:
        """Write the certificate of some releases, and what is done with them afterwards."""
        content = {
            "kind": kind,
            "releases": releases,
            "after": self.plans.place(after),
            "steps": self.steps,
            "nodes": self.plans.nodes,
            "costs": {name: [str(x) for x in cost] for name, cost in costs.items()},
        }
        return document({**content, "epsilon": str(epsilon)})


def _certificate_document(job: ReleasePlan, protections: tuple[Protection, ...]) -> str:
    writer = Writer()
    releases = [_release(b, job, writer) for b in job.prepared.bounded]
    costs = {p.name: job.noise.costs[p.name] for p in protections}
    return writer.document("question", releases, job.prepared.post, costs, job.noise.epsilon)


def _release(b: CertifiedRelease, job: ReleasePlan, writer: Writer) -> dict[str, Any]:
    release = b.release
    statements = job.readings[release.name].relations()
    choice = job.noise.choices.get(release.name)
    return {
        "name": release.name,
        "statements": {name: writer.plans.place(relation) for name, relation in statements.items()},
        "variants": _variants(job.readings[release.name], writer),
        "keys": [_domain(d, writer) for d in release.domains],
        "measures": measures_of(b, {c: _noise(x) for c, x in job.noise.noise.items()}),
        "ranked": {
            r.column: {
                "cells": statement_of(r),
                "counted": r.counted.name,
                "fraction": None if r.fraction is None else str(r.fraction),
                "words": r.words,
                "noise": _rank_noise(job.noise.ranks[r.column]),
            }
            for r in release.ranked
        },
        "choice": None
        if choice is None
        else {
            "selector": release.selector,
            "weighed": None
            if release.weighed is None
            else {
                "column": release.weighed.column,
                "statement": keys_name(release.name),
                "noise": _noise(job.noise.noise[release.weighed.column]),
            },
            "threshold": choice.threshold,
            "groups": choice.groups,
            "delta": str(choice.delta),
        },
        "certificates": [_certificate(c, writer) for c in b.certificates],
    }


def stepped_release(
    b: CertifiedRelease, noise: Mapping[str, Mapping[str, Any]], writer: Writer
) -> dict[str, Any]:
    """Write a release of which the engine is asked for some groups at a time: the steps of a stream."""
    release = b.release
    return {
        "name": release.name,
        "statements": {release.name: writer.plans.place(release.exact)},
        "variants": {},
        "keys": [_domain(d, writer) for d in release.domains],
        "measures": measures_of(b, noise),
        "ranked": {},
        "choice": None,
        "certificates": [_certificate(c, writer) for c in b.certificates],
    }


def measures_of(b: CertifiedRelease, noise: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write the measures of a release, each with its noise."""
    return {
        m.column: {"step": str(m.step), "words": m.words, "noise": noise[m.column]}
        for m in b.release.measures
    }


def _variants(reading: Reading, writer: Writer) -> dict[str, int]:
    """Write the statements that are sent if the least limits are chosen; those for the largest are asked above."""
    places = {}
    for index, units in enumerate(reading.units.values()):
        least = {c: x.bound.limits[0] for c, x in units.clipped.items()}
        if least and units.made.at_once is None:
            relation = units.made.clipped(least)
            places[numbered("least limits", index)] = writer.plans.place(relation)
    for cells, weighed in reading.weighed.items():
        relation = weighed.cut(weighed.bound.limits[0])
        places[f"{cells} least"] = writer.plans.place(relation)
    return places


def _domain(domain: Domain, writer: Writer) -> dict[str, Any]:
    if isinstance(domain, Listed):
        return {"kind": "listed", "keys": [domain.key], "count": len(domain.values)}
    if isinstance(domain, Looked):
        node = writer.plans.place(domain.relation)
        return {"kind": "looked up", "keys": list(domain.keys), "node": node}
    if isinstance(domain, (Chosen, Open)):
        kind = "chosen" if isinstance(domain, Chosen) else "as found"
        return {"kind": kind, "keys": list(domain.keys)}
    return {"kind": "steps", "keys": [domain.key]}


def _certificate(c: Certificate, writer: Writer) -> dict[str, Any]:
    return {
        "protection": c.protection,
        "analysis": c.analysis,
        "bounds": {column: _bound(bound, writer) for column, bound in c.bounds.items()},
        "squares": {column: str(square) for column, square in c.squares.items()},
        "rows": c.rows,
        "groups": c.groups,
        "contribution": c.contribution,
        "claims": [[k.table, list(k.columns), k.trust.name.lower()] for k in c.claims],
        "derivation": [writer.step(s) for s in c.derivation],
    }


def _bound(bound: Move, writer: Writer) -> dict[str, Any]:
    if isinstance(bound, GlobalBound):
        return {"kind": "global", "value": str(bound.value), "norm": bound.norm}
    if isinstance(bound, ClippedContribution):
        within = None if bound.within is None else str(bound.within)
        sizes = {"limits": list(bound.limits), "fine": bound.fine, "within": within}
        sizes |= {"partners": list(bound.partners), "race": bound.race, "assigned": bound.assigned}
        if bound.centering is not None:
            sizes["centered"] = True
        return {"kind": "limits", **sizes}
    assert isinstance(bound, (SmoothSensitivity, Surveyed))
    cap = {"cap": None if bound.cap is None else str(bound.cap)}
    if isinstance(bound, SmoothSensitivity):
        return {"kind": "smooth", **cap}
    surveys = [
        {
            "analysis": s.analysis,
            "statements": [writer.plans.place(x) for x in s.statements],
            "formula": None if any(s.keyed) else s.formula,
            "replaced": s.replaced,
            "answered": None if s.answered is None else writer.plans.place(s.answered),
        }
        for s in bound.surveys
    ]
    size = {"each": str(bound.each), "groups": bound.groups}
    return {"kind": "surveyed", **cap, **size, "surveys": surveys}


def _noise(noise: Noise) -> Mapping[str, Any]:
    share = {"share": str(noise.epsilon)}
    if noise.still:
        return {"kind": "none"}
    if isinstance(noise, RaceNoise):
        sizes = [str(limit / noise.each) for limit in noise.bound.limits]
        return {"kind": "race", "sizes": sizes, **share}
    if isinstance(noise, SurveyNoise):
        smooth = noise.smooth
        fields = {"law": smooth.name, "each": str(smooth.epsilon), "rate": str(smooth.rate)}
        fields |= {"beta": str(smooth.beta), "read": str(noise.beta)}
        return {"kind": "surveyed", **fields, **share}
    if not isinstance(noise, LawfulNoise):
        return {"kind": "of the data", **share}
    law = noise.law
    size = {"law": "normal" if law.normal else "laplace", "size": str(law.size), **share}
    if isinstance(noise, RunningNoise):
        return {"kind": "blocks", **size, **noise.tree.to_dict()}
    if not isinstance(noise, ClippedNoise):
        return {"kind": "plain", **size}
    # In whole steps, for the largest limit; for another limit it is smaller in proportion, or as a root.
    limit = {"limit": noise.limit, "fine": noise.fine}
    choosing = noise.choosing if isinstance(noise, LimitToChoose) else Fraction(0)
    return {"kind": "limited", **size, **limit, "choosing": str(choosing)}


def _rank_noise(noise: RankNoise) -> Mapping[str, Any]:
    if noise.choice is None:
        return {"kind": "none"}
    # In rows, for the largest limit.
    fields = {"sharpness": str(noise.choice.sharpness * noise.fine), "share": str(noise.epsilon)}
    if noise.ends is not None:
        fields["ends"] = str(noise.ends.sharpness * noise.fine)
    if noise.bound is not None:
        fields["choosing"] = str(noise.choosing)
    return {"kind": "choice", **fields}
