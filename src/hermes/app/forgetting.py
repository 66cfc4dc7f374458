"""What a session leaves beside the database, and its end: the log, long results, long outputs.

Invariant: only files of the named session are removed; one that is gone already is fine.
"""

import shutil
from pathlib import Path

from hermes.domain.clock import SystemClock
from hermes.domain.session import SessionId
from hermes.effects.spill import Spill
from hermes.machines.session import folder_of


def forget_files(home: Path, session: SessionId) -> None:
    """Remove the files of a session. Blocks for a moment."""
    (home / "sessions" / f"session_{session}.json").unlink(missing_ok=True)
    shutil.rmtree(Spill(home, SystemClock()).folder(session).parent, ignore_errors=True)
    for name in (session, f"{session}:search"):
        shutil.rmtree(folder_of(name, home), ignore_errors=True)
