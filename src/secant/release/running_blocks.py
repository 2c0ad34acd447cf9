"""Which running sums are drawn by blocks of steps: settled once the public keys are known, before anything is spent.

In: a job with plain noise, and its keys. Out: the same job with noise on blocks for measures whose running sums are
shown, where that errs less (continual.batch). Public facts only: the text, the keys, sizes of noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from secant.accuracy.binding_facts import noise_alone_moves, rests_on_inferred_limit
from secant.accuracy.trace import Traced
from secant.noise.calibrate import repriced
from secant.noise.continual.batch import best_tree, change_of_blocks
from secant.noise.continual.levels import Tree
from secant.noise.measure_noise import PlainNoise
from secant.noise.mechanisms.sums import whole_variance
from secant.noise.running import RunningNoise
from secant.plan import nodes as n
from secant.plan.facts.lineage import Lineage
from secant.plan.rewrites.rewrite import columns_of
from secant.records import frozen
from secant.release.measured import order_of_keys
from secant.release.release_plan import Keys, ReleasePlan
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.bounds import GlobalBound

LEAST = 0.5
"""Scales of plain noise, in whole steps, from which on blocks are considered: smaller ones are hardly seen."""
KINDS = ("rows", "unit")


def by_blocks(
    job: ReleasePlan, keys: Mapping[str, Keys | None], kinds: Mapping[str, str]
) -> ReleasePlan:
    """Give measures whose running sums gain by it noise on blocks; `kinds` are those of the protections."""
    if len(job.prepared.bounded) != 1:
        return job  # levels of ROLLUP agree among each other
    (b,) = job.prepared.bounded
    group_keys = keys[b.release.name]
    if not group_keys or not noise_alone_moves(b):
        return job
    noise = dict(job.noise.noise)
    for ordered in _orders(job.traced, [k.name for k in b.release.exact.keys]):
        for m in b.release.measures:
            plain = noise[m.column]
            if m.column not in ordered.measures or not isinstance(plain, PlainNoise):
                continue
            if m.preprocessed is not None or not _summed(b, m.column, kinds):
                continue
            runs = ordered.runs(group_keys)
            shown = _shown_alone(job.traced, m.column, ordered)
            tree = tree_for(plain, max(map(len, runs)), shown)
            if tree is not None:
                noise[m.column] = RunningNoise(plain.epsilon, plain.share, plain, tree, runs)
    if noise == job.noise.noise:
        return job
    return replace(job, noise=repriced(replace(job.noise, noise=noise), (b,)))


def _summed(b: CertifiedRelease, column: str, kinds: Mapping[str, str]) -> bool:
    """Whether the sum of all moves is bounded publicly, for people and rows: not per unit of a distance."""
    bounds = {c.protection: c.bounds[column] for c in b.certificates}
    return not rests_on_inferred_limit(b, column) and all(
        isinstance(x, GlobalBound) and (not x.value or (x.norm == "l1" and kinds[p] in KINDS))
        for p, x in bounds.items()
    )


def tree_for(plain: PlainNoise, steps: int, shown: bool) -> Tree | None:
    """Give the tree that running sums of so many steps gain most by; None where plain sums serve as well."""
    law = plain.law
    if law.size < LEAST:
        return None
    single = whole_variance(float(law.size), normal=law.normal)

    def variance(tree: Tree) -> float:
        """Compare the noise of a block with that of a step by itself."""
        size = plain.share.law(*change_of_blocks(tree, *plain.hidden)).size
        return whole_variance(float(size), normal=law.normal) / single

    return best_tree(steps, shown, variance)


@frozen
class _Order:
    """The running sums of a question that have one order of groups."""

    measures: frozenset[str]
    symbols: frozenset[str]
    order: tuple[tuple[int, bool], ...]
    """Places of the keys that groups are ordered by, and whether they fall."""
    partition: tuple[int, ...]

    def runs(self, keys: Keys) -> tuple[tuple[int, ...], ...]:
        """Give the places of the groups of each partition, in order."""
        runs: dict[tuple[object, ...], list[int]] = {}
        for index, key in enumerate(keys):
            runs.setdefault(tuple(key[p] for p in self.partition), []).append(index)
        for places in runs.values():
            for at, falling in reversed(self.order):
                places.sort(key=lambda i, at=at: order_of_keys(keys[i][at]), reverse=falling)  # type: ignore[misc]
        return tuple(map(tuple, runs.values()))


def _orders(traced: Traced, keys: list[str]) -> Iterator[_Order]:
    """Go through the orders of running sums whose steps and partitions are keys of the release."""
    lineage = Lineage()
    lineage.follow(traced.plan)
    calls = {
        call.name: call
        for node in n.walk(traced.plan)
        if isinstance(node, n.Window)
        for call in node.calls
    }

    def place(scalar: n.Scalar) -> int | None:
        while isinstance(scalar, n.Column) and scalar.name not in keys:
            definition = lineage.definitions.get(scalar.name)
            if definition is None:
                return None
            scalar = definition
        return keys.index(scalar.name) if isinstance(scalar, n.Column) else None

    symbols_by_order: dict[tuple[tuple[tuple[int, bool], ...], tuple[int, ...]], list[str]] = {}
    for symbol, gathered in traced.gathered.items():
        call = None if gathered.near is None else calls.get(gathered.near.place)
        if call is None or not gathered.running_sum:
            continue
        order = [(place(k.expression), k.descending) for k in call.order]
        partition = [place(x) for x in call.partition]
        by = tuple((p, falling) for p, falling in order if p is not None)
        within = tuple(p for p in partition if p is not None)
        if len(by) == len(order) and len(within) == len(partition):
            symbols_by_order.setdefault((by, within), []).append(symbol)
    for (by, within), symbols in symbols_by_order.items():
        arguments = [traced.gathered[s].argument for s in symbols]
        drawn = {c for a in arguments if a is not None for c in columns_of(a)} & traced.drawn.keys()
        measures = frozenset(traced.drawn[c].column for c in drawn)
        yield _Order(measures, frozenset(symbols), by, within)


def _shown_alone(traced: Traced, column: str, ordered: _Order) -> bool:
    """Whether some output shows a measure otherwise than by these running sums."""
    for output in traced.outputs:
        scalar = traced.made.get(output)
        for name in () if scalar is None else columns_of(scalar) - ordered.symbols:
            gathered = traced.gathered.get(name)
            if gathered is not None and gathered.near is None and gathered.call.function == "sum":
                continue  # the running sum up to the last step
            inner = None if gathered is None else gathered.argument
            behind = {name} if inner is None else columns_of(inner)
            if any(c in traced.drawn and traced.drawn[c].column == column for c in behind):
                return True
    return False
