"""`secant serve`: people ask over the network, and never hold the data."""

from __future__ import annotations

from typing import Annotated

from secant.cli.options import flag, named

Config = Annotated[str | None, named("--config", "A TOML file; see the how-to.", "FILE")]
Http = Annotated[
    int | None,
    named("--http", "Port of the HTTP API and the console.", "PORT"),
]
Postgres = Annotated[
    int | None,
    named("--postgres", "Port for PostgreSQL's clients.", "PORT"),
]
SelfMade = Annotated[
    bool | None,
    flag("--self-made-tls", "Speak TLS with a certificate made on the spot."),
]
Policy = Annotated[
    str | None,
    named(
        ["--policy", "-p"],
        "The policy file; else the configuration's, else SECANT_POLICY's, else ./policy.toml.",
        "FILE",
    ),
]


def serve(
    *,
    config: Config = None,
    policy: Policy = None,
    http: Http = None,
    postgres: Postgres = None,
    self_made_tls: SelfMade = None,
) -> int:
    """Let people ask over the network, without holding the data."""
    import logging
    import sys
    from pathlib import Path

    from secant.cli import show
    from secant.service.serving import Server, ended_by_signal, folder_of
    from secant.service.settings import load_settings
    from secant.service.tls import fingerprint, tls_files

    options = {
        "policy": policy,
        "http.port": http,
        "postgres.port": postgres,
        "tls.self_made": self_made_tls or None,
    }
    settings = load_settings(None if config is None else Path(config), overrides=options)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    # Only our own lines: a library's may quote what it was handed.
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger("secant").setLevel(logging.INFO)
    # A terminal that closes ends what was begun in it; a service without one is told by SIGHUP to read its files again.
    with ended_by_signal(reloads=not sys.stdin.isatty()) as wait, Server(settings) as server:
        for front in server.fronts:
            show.say(f"Listening  {front.address}")
        if settings.tls.self_made and (files := tls_files(settings, folder_of(settings))):
            show.say(f"Certificate, self-made, SHA-256  {fingerprint(files[0])}")
        if not server.service.users.all():
            show.say("There are no users yet: secant user add NAME --role owner")
        if not server.service.ready():
            show.say("Questions cannot be answered yet; the log says why.")
        sys.stdout.flush()
        wait(server.reload)
        show.say("Stopping: what runs may end, every charge is settled or kept")
    return 0
