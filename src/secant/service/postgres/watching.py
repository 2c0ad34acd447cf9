"""Who takes too much of the shadow, or says nothing: looked at from outside, so that nothing a session sets matters.

In: the sessions of the port, the shadow's processes and files. Out: statements that are canceled, sessions that are
ended. Never here: what anybody asked.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

from secant.errors import AccessError
from secant.records import frozen
from secant.service.postgres.link import Gone
from secant.service.postgres.session import Session
from secant.service.postgres.shadow import Shadow
from secant.service.postgres.telling import plain_error
from secant.service.users import User

TICK = 0.25
"""Seconds between two looks."""
PROBE = 5.0
"""Seconds between two questions whether the shadow answers."""
SILENT = 15.0
"""Seconds that the shadow has for an answer."""
_MOST_SILENCES = 2
_GRACE = 5.0
"""Seconds that a statement which was canceled has to end."""
_TEMPORARY = re.compile(r"t(\d+)_\d+(?:_\w+)?(?:\.\d+)?")
"""Files of temporary tables: the number is that of the session in the shadow."""
_SPILLED = re.compile(r"pgsql_tmp(\d+)\.")
"""Files that a statement writes while it runs: the number is that of the process."""

_log = logging.getLogger("secant.service")


@frozen
class Files:
    """Bytes in the folder of a shadow."""

    total: int
    of_tables: Counter[int]
    """By number of a session in the shadow."""
    spilled: Counter[int]
    """By process."""


class Watch:
    """Looks after a shadow and the sessions that use it. Run its loops."""

    def __init__(
        self,
        shadow: Shadow,
        sessions: Callable[[], Collection[Session]],
        check_still: Callable[[User], None],
    ) -> None:
        self._shadow, self._sessions, self._check_still = shadow, sessions, check_still
        self._ended: set[int] = set()
        """Processes that were told to end: what they still have is not counted again."""
        self._active = True
        self.answers = True
        """Whether the shadow answered when it was last asked."""

    async def hold_limits(self) -> None:
        """Look at time, memory and files, until somebody cancels this."""
        while True:
            await asyncio.sleep(TICK)
            try:
                await self._look()
            except (Gone, TimeoutError, OSError):
                continue  # it ends just now; whoever starts it again tells
            except Exception as error:  # noqa: BLE001 - limits hold as long as somebody looks
                _log.error("an unexpected %s while the shadow was looked at", type(error).__name__)

    async def keep_healthy(self) -> None:
        """Let a shadow that was started again have its tables; end one that does not answer."""
        silences = 0
        while True:
            try:
                async with asyncio.timeout(SILENT):
                    await self._shadow.refresh()
                silences, self.answers = 0, True
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                silences, self.answers = silences + 1, False
                _log.warning(
                    "the schema-only PostgreSQL server does not answer (%s)", type(error).__name__
                )
                if silences >= _MOST_SILENCES:
                    silences = 0
                    self._shadow.kill()
            for _ in range(int(PROBE / TICK)):
                await asyncio.sleep(TICK)
                if not self._shadow.healthy():
                    break

    async def end_logins(self) -> None:
        """End the sessions of users who were removed, revoked or given another role or password."""
        while True:
            await asyncio.sleep(PROBE)
            for session in self._sessions():
                try:
                    await asyncio.to_thread(self._check_still, session.user)
                except AccessError:
                    session.end(fatal("57P01", "the login has ended", "connect again"))
                except Exception as error:  # noqa: BLE001 - each question is checked anyway
                    _log.error("an unexpected %s while logins were looked at", type(error).__name__)

    async def _look(self) -> None:
        sessions = self._sessions()
        now = asyncio.get_running_loop().time()
        for session in sessions:
            await self._timed(session, now)
        active = any(session.link.busy or session.began is not None for session in sessions)
        if active or self._active:  # once more after the last statement: its tables stay
            await self._measured({s.link.process: s for s in sessions})
        self._active = active

    async def _timed(self, session: Session, now: float) -> None:
        limits = self._shadow.limits
        if session.link.ended or not self._shadow.serves(session.link):
            session.end(LOST)
        elif session.heard is None and session.left:
            session.end(LOST)  # the service says whether a question goes on that nobody waits for
        elif session.began is not None and now - session.began >= limits.statement_seconds:
            if now - session.began >= limits.statement_seconds + _GRACE:
                session.end(fatal("57014", "the statement took longer than the owner allows"))
            else:
                async with asyncio.timeout(1):
                    await session.link.cancel()
        elif session.heard is not None and now - session.heard >= limits.idle_seconds:
            session.end(fatal("57P05", "the session was idle for longer than the owner allows"))

    async def _measured(self, sessions: dict[int, Session]) -> None:
        server = self._shadow.server
        if server is None:
            return
        limits, folder = self._shadow.limits, server.data
        memory, files = await asyncio.to_thread(lambda: (memory_of(sessions), files_in(folder)))
        self._ended &= set(sessions)
        live = sessions.keys() - self._ended
        live_memory = Counter({p: n for p, n in memory.items() if p in live})
        if live_memory.total() > limits.memory:
            self._end(
                live_memory, sessions, "53200", "the sessions take more memory than there may be"
            )
        disk = await self._by_process(files)
        live_disk = Counter({p: n for p, n in disk.items() if p in live})
        ending = disk.total() - live_disk.total()  # of processes that were told to end
        while live_disk and live_disk.most_common(1)[0][1] > self._shadow.session_disk:
            ending += self._end(live_disk, sessions, "53100", TOO_LONG)
        total = files.total - ending
        # Files grow while they are measured: room for that is left.
        while live_disk and 2 * total > self._shadow.disk and 2 * live_disk.total() > total:
            total -= self._end(live_disk, sessions, "53100", TOO_LONG)
        if total > self._shadow.disk:
            _log.error(
                "the files of the schema-only PostgreSQL server are too large: it begins anew"
            )
            self._shadow.kill()

    def _end(self, sizes: Counter[int], sessions: dict[int, Session], state: str, why: str) -> int:
        """End the session that takes most; give how much that is."""
        process, size = sizes.most_common(1)[0]
        del sizes[process]
        self._ended.add(process)
        _log.warning("a session of user=%s was ended: %s", sessions[process].user.name, why)
        sessions[process].end(fatal(state, why))
        return size

    async def _by_process(self, files: Files) -> Counter[int]:
        sizes = Counter(files.spilled)
        if files.of_tables:
            listed = ", ".join(str(number) for number in files.of_tables)
            async with asyncio.timeout(SILENT):
                rows = await self._shadow.asked(
                    f"SELECT n, pg_stat_get_backend_pid(n) FROM unnest(ARRAY[{listed}]::int[]) AS n"
                )
            for number, process in rows:
                if number is not None and process is not None:
                    sizes[int(process)] += files.of_tables[int(number)]
        return sizes


def fatal(state: str, text: str, hint: str = "") -> bytes:
    """Write an error that ends a session."""
    return plain_error(state, text, hint, severity="FATAL")


LOST = fatal("57P02", "the connection to the schema-only server was lost", "connect again")
TOO_LONG = "temporary tables and files take more than the owner allows"


def memory_of(processes: Collection[int]) -> dict[int, int]:
    """Give how many bytes processes have for themselves; nothing on systems that do not tell."""
    sizes = {}
    for process in processes:
        try:
            status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        line = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
        if line is not None:
            sizes[process] = 1024 * int(line[1])
    return sizes


def files_in(folder: Path) -> Files:
    """Measure a folder; what goes while it is measured is not there."""
    total, tables, spilled = 0, Counter[int](), Counter[int]()
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                size = 512 * os.lstat(os.path.join(directory, name)).st_blocks
            except OSError:
                continue
            total += size
            if match := _TEMPORARY.fullmatch(name):
                tables[int(match[1])] += size
            elif match := _SPILLED.match(name):
                spilled[int(match[1])] += size
    return Files(total, tables, spilled)
