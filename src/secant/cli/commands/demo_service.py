"""`secant demo --serve`: the service over sample data, with an owner and an analyst made on the spot.

In: an empty directory, a port. Out: the address and two passwords, made for this run. Listens on this machine only.
"""

from __future__ import annotations

import sys
from pathlib import Path


def serve_clinic(directory: Path, port: int) -> int:
    """Make the clinic and its users, and serve it until somebody ends it."""
    from secant.cli import show
    from secant.cli.demo_data import make_clinic
    from secant.service.serving import Server, ended_by_signal
    from secant.service.settings import load_settings
    from secant.service.verifiers import generated_password

    _, policy = make_clinic(directory)
    settings = load_settings(None, {}, {"policy": policy, "http.port": port})
    with ended_by_signal() as wait, Server(settings) as server:
        show.say(f"Open       {server.fronts[0].address}")
        for name, role in (("ada", "analyst"), ("olga", "owner")):
            password = generated_password()
            server.service.users.add(name, role, password)
            show.say(f"{role:10} {name}, password {password}")
        show.say("A clinic with 2,000 patients who never existed. Ctrl-C ends it.")
        sys.stdout.flush()
        wait()
    return 0
