"""`secant inspect --stream`: the owner sees how far single units, or rows, move a stream. Not private.

In: the name of a stream. Out: a quantile and the largest of what they add, beside the bound that noise is for. This is
the "(1 - delta)-global sensitivity" of the literature under its right name: a figure of the data, and no guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secant.streams.inspecting import Spread

NAME = "a (1 - delta)-quantile of the data at hand, which is no differential privacy"


def spread_in(name: str, policy: str, source: str | None, share: str) -> list[Spread]:
    """Read the rows of a stream; no analyst's connection leads here."""
    from secant.engines.sources import open_source
    from secant.numeric.parameters import level_of
    from secant.policy.check import fit_policy
    from secant.policy.file import load_policy
    from secant.stages.ask import protections_in_force
    from secant.streams.inspecting import spread_of
    from secant.streams.releasing import opened_stream

    level, loaded = level_of(share), load_policy(policy)
    beside = None if source or loaded.path is None else loaded.path.parent
    backend = open_source(source or loaded.source, beside=beside, limits=loaded.limits)
    try:
        fitted = fit_policy(loaded, backend.catalog())
        opened = opened_stream(
            fitted, name, lambda chosen: protections_in_force(fitted, chosen), backend
        )
        return spread_of(opened, level)
    finally:
        backend.close()


def spread_lines(spreads: list[Spread]) -> Iterator[str]:
    """Say what most and what the largest add, and that only the bound protects everybody."""
    for x in spreads:
        share, one = float(x.share), x.of.removesuffix("s")
        yield f"{x.measure}, all steps together, before limits cut:"
        yield f"  {share:.6g} of the {x.of} add at most {x.quantile:.6g}: {NAME}"
        yield f"  the largest {one} adds {x.largest:.6g}"
        yield f"  noise is for {x.bound:.6g}, which holds for every {one} (declared limits and ranges)"
    yield "Noise for less than that bound would protect some and not others: those who add most have most to lose."


def spread_record(spreads: list[Spread], warning: str) -> dict[str, Any]:
    """Give the figures for programs; the first key says whose they are."""
    return {
        "owner_only": warning,
        "is": NAME,
        "measures": [
            {
                "measure": x.measure,
                "of": x.of,
                "share": float(x.share),
                "quantile": x.quantile,
                "largest": x.largest,
                "bound": x.bound,
            }
            for x in spreads
        ],
    }
