"""The error that will be printed, before anything is spent: what the printing says of made-up answers.

In: a job, the public keys, and a session for public tables. Out: for each noisy output the largest error that can stand
beside it, whatever is drawn. Where that depends on what is drawn, as beside an average, the error that would stand
beside an answer of the size that declared facts lead to expect: no guarantee, and marked as none. Made-up numbers take
the place of released ones and go the whole way that an answer goes, so what is foreseen and what is printed cannot
drift apart. No statement over protected rows is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction

from secant.accuracy.noise_lineage import NoiseLineage, noise_lineage
from secant.accuracy.reported_error import reported_ranks
from secant.accuracy.sizes import Guess, guesses
from secant.engines.backend import Session
from secant.noise.measure_noise import Noise
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure
from secant.plan.rewrites.rewrite import columns_of
from secant.policy.policy import Policy
from secant.records import frozen
from secant.release.draw import NoisyTables
from secant.release.finish import Result, finish, from_engine
from secant.release.measured import value_of
from secant.release.release_plan import Keys, ReleasePlan, released_fields
from secant.sensitivity.bound import CertifiedRelease
from secant.sensitivity.public_facts import PublicFacts

PROBES = (1, 3)
"""Two answers whose parts have no common factor: an error that is the same beside both does not depend on them."""
LARGE = 10**6
FEW = 3
SAME = 1e-6
"""How far two errors may differ, relatively, and be one: they are computed in floats."""


@frozen
class Forecast:
    """What is known of printed errors before anything is spent."""

    errors: Mapping[str, float | None]
    """Noisy output -> its error; None where only the answer tells."""
    lineage: NoiseLineage
    """Which noise decides each output: traced here, once, and handed on to the answer."""
    rough: Mapping[str, float] = field(default_factory=dict)
    """Output whose error is larger if fewer rows stand behind it than are expected -> how many are."""
    ranks: frozenset[str] = frozenset()
    """Outputs whose error is a number of ranks."""
    expected: Mapping[str, Guess] = field(default_factory=dict)
    """Release -> about what one of its groups holds, where public sizes tell."""


def forecast(
    job: ReleasePlan,
    session: Session,
    policy: Policy,
    facts: PublicFacts,
    *,
    thorough: bool = True,
) -> Forecast:
    """Give for each noisy output the error that will be printed: at most, in ranks, or at the expected size."""
    keys, lineage = job.keys, noise_lineage(job)
    errors = forecast_errors(job, keys, session, lineage, thorough=thorough)
    ranks = _ranks(job)
    expected = guesses(job, keys, policy, facts)
    open_ = {o for o, e in errors.items() if e is None}
    rough = _roughly(job, keys, session, lineage, expected, open_)
    errors_by_output = {**errors, **{o: error for o, (error, _) in rough.items()}, **ranks}
    rows = {o: rows for o, (_, rows) in rough.items()}
    return Forecast(errors_by_output, lineage, rows, frozenset(ranks), expected)


def _ranks(job: ReleasePlan) -> dict[str, float]:
    """Give for each order statistic how many ranks it may be off (noise.ranks)."""
    ((*ranks,),) = reported_ranks(job, 1, {}) or [[]]
    return {o: r for o, r in zip(job.traced.outputs, ranks, strict=False) if r is not None}


def _roughly(
    job: ReleasePlan,
    keys: Mapping[str, Keys | None],
    session: Session,
    relied: NoiseLineage,
    expected: Mapping[str, Guess],
    outputs: set[str],
) -> dict[str, tuple[float, float]]:
    """Give the error beside answers of the expected size, and how many rows are expected, for some outputs."""
    named = {m.column: b.release.name for b in job.prepared.bounded for m in b.release.measures}
    guessed = {c for guess in expected.values() for c in guess.steps}
    guessable = {o for o in outputs if relied.columns[o] <= guessed}
    if not guessable or relied.rows:
        return {}
    some = _few(job, keys, relied, sorted(guessable))
    by_output: dict[str, tuple[float, float]] = {}
    try:
        shown = [
            finish(
                job,
                NoisyTables(_expected(job, some, expected, side), job.noise.noise),
                _computer(session),
                relied,
                made_up=True,
            )
            for side in (0, Fraction(1, 2), 1)
        ]
    except Failure:
        return {}
    for output in guessable:
        index = job.traced.outputs.index(output)
        cells = [row[index] for s in shown for row in s.errors or ()]
        finite = [c for c in cells if c is not None]
        if finite and len(finite) == len(cells):
            rows = min(expected[named[c]].rows for c in relied.columns[output])
            by_output[output] = (max(finite), rows)
    return by_output


def _expected(
    job: ReleasePlan,
    keys: Mapping[str, Keys | None],
    expected: Mapping[str, Guess],
    side: Fraction | int,
) -> dict[str, n.Values]:
    """Make up released tables of the expected size, somewhere between the ends of what is expected."""

    def number(b: CertifiedRelease, index: int, cell: int, column: str) -> int:
        guess = expected.get(b.release.name)
        low, high = (0.0, 0.0) if guess is None else guess.steps.get(column, (0.0, 0.0))
        return round(low + float(side) * (high - low))

    return {b.release.name: _table(b, keys[b.release.name], number) for b in job.prepared.bounded}


def forecast_errors(
    job: ReleasePlan,
    keys: Mapping[str, Keys | None],
    session: Session,
    relied: NoiseLineage,
    *,
    thorough: bool = True,
) -> dict[str, float | None]:
    """Give for each output that noise moves the error that will be printed at most; None where draws decide.

    Limits that are chosen privately are tried one by one, which takes time; unless `thorough`, None stands for what
    depends on them.
    """
    noisy = [o for o in job.traced.outputs if relied.columns[o]]
    choosing = {c for c, noise in job.noise.noise.items() if noise.candidates(1)}
    open_ = {o for o in noisy if relied.columns[o] & choosing}
    errors: dict[str, float | None] = dict.fromkeys(noisy)
    remaining = {
        o for o in noisy if _settled(job, keys, relied, o) and (thorough or o not in open_)
    }
    for number, noise in enumerate(_choices(job, keys)):
        if number:
            remaining &= open_
        if not remaining:
            break
        try:
            shown = _shown(job, keys, session, noise, relied, noisy)
        except Failure:  # made-up numbers may not suit an expression that real ones do
            return dict.fromkeys(noisy)
        for output in sorted(remaining):
            error = _error_of_all(shown, job.traced.outputs.index(output))
            before = errors[output] or 0.0
            errors[output] = None if error is None else max(before, error)
            remaining -= {output} if error is None else set()
    return errors


def _shown(
    job: ReleasePlan,
    keys: Mapping[str, Keys | None],
    session: Session,
    noise: Mapping[str, Noise],
    relied: NoiseLineage,
    noisy: list[str],
) -> list[Result]:
    """Give what would be shown at a choice of limits, probe by probe; one probe where a second tells nothing more."""
    some = _few(job, keys, relied, noisy)
    probes = PROBES[:1] if _shown_as_drawn(job, relied, noisy) else PROBES
    results = [_simulated_answer(job, some, session, probe, noise, relied) for probe in probes]
    if some is not keys and any(not shown.rows for shown in results):
        return [_simulated_answer(job, keys, session, probe, noise, relied) for probe in probes]
    return results


def _shown_as_drawn(job: ReleasePlan, relied: NoiseLineage, noisy: list[str]) -> bool:
    """Whether each output is one number of one release, as it was drawn: its error is that of its noise alone.

    Such a number may be kept from falling below zero, which no made-up number does.
    """
    if relied.rows or len(job.prepared.bounded) != 1:
        return False
    (b,) = job.prepared.bounded
    measures = {m.column for m in b.release.measures}
    for output in noisy:
        scalar = job.traced.made_of(output)
        if isinstance(scalar, n.Call) and scalar.function == "greatest":
            first, *limits = scalar.arguments
            if not all(isinstance(x, n.Literal) and x.value == 0 for x in limits):
                return False
            scalar = first
        if not isinstance(scalar, n.Column) or scalar.name not in measures:
            return False
    return True


def _few(
    job: ReleasePlan, keys: Mapping[str, Keys | None], relied: NoiseLineage, noisy: list[str]
) -> Mapping[str, Keys | None]:
    """Give a few keys where all rows have the same error: outputs are made of the numbers of one row alone."""
    measures = {m.column for b in job.prepared.bounded for m in b.release.measures}
    expressions = [job.traced.made_of(output) for output in noisy]
    alike = all(scalar is not None and columns_of(scalar) <= measures for scalar in expressions)
    if not alike or relied.rows:
        return keys
    return {name: listed if listed is None else listed[:FEW] for name, listed in keys.items()}


def _settled(
    job: ReleasePlan, keys: Mapping[str, Keys | None], relied: NoiseLineage, output: str
) -> bool:
    """Whether all that the printed error of an output depends on is public or tried."""
    used = relied.columns[output]
    noise = job.noise.noise
    choosing = [c for c in used if c in noise and noise[c].candidates(1)]
    unknown = any(
        keys[b.release.name] is None
        for b in job.prepared.bounded
        if used & {m.column for m in b.release.measures}
    )
    # Where noise chooses rows, or keys, the level depends on how many there are to choose from.
    return len(choosing) <= 1 and not (relied.rows and unknown)


def _error_of_all(drawn: list[Result], index: int) -> float | None:
    """Give the largest error of a column, if errors are the same whatever is drawn."""
    errors = [shown.errors for shown in drawn]
    if any(not rows for rows in errors) or len({len(rows or ()) for rows in errors}) > 1:
        return None
    worst = 0.0
    for cells in zip(*([row[index] for row in rows or ()] for rows in errors), strict=True):
        finite = [c for c in cells if c is not None]
        if len(finite) < len(cells) or max(finite) - min(finite) > SAME * max(finite):
            return None
        worst = max(worst, *finite)
    return worst


def _choices(job: ReleasePlan, keys: Mapping[str, Keys | None]) -> list[dict[str, Noise]]:
    """Give what the private choice of limits may come to: each limit of each measure beside the least of the others.

    The least limits cut off most units, so no combination cuts more off a measure, or gives it more noise.
    """
    least = dict(job.noise.noise)
    others: list[dict[str, Noise]] = []
    for b in job.prepared.bounded:
        groups = len(keys[b.release.name] or ((),))
        for m in b.release.measures:
            several = job.noise.noise[m.column].candidates(groups)
            least[m.column] = several[0] if several else least[m.column]
            others += [{m.column: limited} for limited in several[1:]]
    return [least, *({**least, **other} for other in others)]


def _simulated_answer(
    job: ReleasePlan,
    keys: Mapping[str, Keys | None],
    session: Session,
    probe: int,
    noise: Mapping[str, Noise],
    relied: NoiseLineage,
) -> Result:
    """Give the answer that would be shown if made-up numbers had been released."""

    def number(b: CertifiedRelease, index: int, cell: int, column: str) -> int:
        # Large, so that no limit of the display is near, and without a common factor from probe to probe.
        return int((LARGE + 7 * index + 101 * cell) * probe ** (cell + 1))

    tables = {b.release.name: _table(b, keys[b.release.name], number) for b in job.prepared.bounded}
    return finish(job, NoisyTables(tables, noise), _computer(session), relied, made_up=True)


def _computer(session: Session) -> Callable[[n.Relation], list[tuple[object, ...]]]:
    return lambda plan: _computed(plan, session)


def _computed(plan: n.Relation, session: Session) -> list[tuple[object, ...]]:
    """Compute what follows the releases: here, so that nothing is sent, unless it reads public tables."""
    if any(isinstance(node, n.Scan) for node in n.walk(plan)):
        return from_engine(session)(plan)
    return list(evaluate(plan, {}))


def _table(
    b: CertifiedRelease, keys: Keys | None, number: Callable[[CertifiedRelease, int, int, str], int]
) -> n.Values:
    fields = released_fields(b)
    shown = keys if keys is not None else [(None,) * len(b.release.exact.keys)]
    rows = []
    for index, key in enumerate(shown):
        numbers = [
            value_of(number(b, index, position, measure.column), measure)
            for position, measure in enumerate(b.release.measures, start=1)
        ]
        rows.append((*key, *numbers, *(None for _ in b.release.ranked)))
    return n.Values(fields, tuple(rows))
