"""`secant mcp`: an agent asks over standard input and output, within a cap."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

Policy = Annotated[
    str | None,
    Parameter(
        name=["--policy", "-p"],
        help="The policy file; else the configuration's, else SECANT_POLICY's, else ./policy.toml.",
        metavar="FILE",
    ),
]
Config = Annotated[
    str | None, Parameter(name="--config", help="A TOML file, as for secant serve.", metavar="FILE")
]
Cap = Annotated[
    str, Parameter(name="--cap", help="Epsilon that the conversation may spend.", metavar="E")
]
Analyst = Annotated[
    str, Parameter(name="--analyst", help="Whose share of the budget is spent.", metavar="NAME")
]


def mcp(
    *, policy: Policy = None, config: Config = None, cap: Cap = "1", analyst: Analyst = "agent"
) -> int:
    """Let an agent ask, within a cap for the conversation (Model Context Protocol)."""
    from pathlib import Path

    from secant.service.agents import build
    from secant.service.asking import Desk
    from secant.service.settings import load_settings

    settings = load_settings(None if config is None else Path(config), given={"policy": policy})
    desk = Desk(settings)
    try:
        build(desk, analyst, cap).run()
    finally:
        desk.close()
    return 0
