"""`secant mcp`: an agent asks over standard input and output, within a cap."""

from __future__ import annotations

from typing import Annotated

from secant.cli.options import named

Policy = Annotated[
    str | None,
    named(
        ["--policy", "-p"],
        "The policy file; else the configuration's, else SECANT_POLICY's, else ./policy.toml.",
        "FILE",
    ),
]
Config = Annotated[str | None, named("--config", "A TOML file, as for secant serve.", "FILE")]
Cap = Annotated[str, named("--cap", "Epsilon that the conversation may spend.", "E")]
Analyst = Annotated[str, named("--analyst", "Whose share of the budget is spent.", "NAME")]


def mcp(
    *, policy: Policy = None, config: Config = None, cap: Cap = "1", analyst: Analyst = "agent"
) -> int:
    """Let an agent ask, within a cap for the conversation (Model Context Protocol)."""
    from pathlib import Path

    from secant.service.agents import build
    from secant.service.asking import Service
    from secant.service.settings import load_settings

    settings = load_settings(None if config is None else Path(config), overrides={"policy": policy})
    service = Service(settings)
    try:
        build(service, analyst, cap).run()
    finally:
        service.close()
    return 0
