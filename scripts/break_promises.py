#!/usr/bin/env python3
"""Break each promise in a copy of the code, and see the tests notice. Exits with 1 when one goes unnoticed.

Each line names a promise, the file that keeps it, what is there, what a careless hand would write, and the tests that
must turn red. A line whose text is no longer found fails as well, so that this list cannot rot.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CONTRACTS = "tests/contracts"
EFFECTS = "tests/unit/effects"
TOOLS = "tests/unit/tools"
CHECKPOINTS = "tests/unit/machines/test_checkpoint.py"


class Break(NamedTuple):
    promise: str
    file: str
    there: str
    instead: str
    tests: str = CONTRACTS


BREAKS = (
    Break(
        "an answer comes after the commit",
        "store/writer.py",
        "            connection.commit()\n",
        "            connection.rollback()\n",
    ),
    Break(
        "a failed work leaves nothing behind",
        "store/writer.py",
        "connection.back_to_savepoint()",
        "connection.release()",
    ),
    Break("no number of a stream is given twice", "store/event.py", "SET seq = excluded.seq", "SET seq = 0"),
    Break("a stream has no gap", "store/event.py", "event.stream))[0][0]) + 1", "event.stream))[0][0]) + 2"),
    Break(
        "a known dedupe key is the same job",
        "store/job.py",
        "            job.kind,\n            job.dedupe_key,",
        "            job.kind,\n            None,",
    ),
    Break(
        "only the newest fence settles",
        "store/job.py",
        "WHERE tenant = ? AND id = ? AND fence = ? AND state = 'running' {condition}",
        "WHERE tenant = ? AND id = ? AND fence >= ? AND state = 'running' {condition}",
    ),
    Break(
        "a lane keeps its order",
        "store/job.py",
        "            state = JobState.BLOCKED\n    inserted",
        "            state = JobState.QUEUED\n    inserted",
    ),
    Break(
        "a job that tries again holds its lane",
        "store/job.py",
        "o.attempt > 0 AND o.number",
        "o.attempt > 99 AND o.number",
    ),
    Break(
        "a due time makes one job",
        "jobs/scheduler.py",
        'dedupe_key=f"{schedule.id}@{at.isoformat()}"',
        "dedupe_key=None",
        "tests/contracts tests/faults/test_clock.py tests/stories",
    ),
    Break(
        "an event is handled once",
        "store/cursor.py",
        'AND fence = ? AND position < ?"',
        'AND fence >= ? AND position < ?"',
        "tests/contracts tests/faults/test_takeover.py tests/faults/test_nth_word.py",
    ),
    Break(
        "a lost answer does not double a job's work",
        "store/job.py",
        "        _require_settled(tx, job, settlement)\n        return None",
        "        _require_settled(tx, job, settlement)\n        return settlement",
    ),
    Break(
        "what a handler stores commits with its cursor",
        "bus/subscription.py",
        "                    self._call(tx, event)\n\n        await self._store.write(work)",
        "                    pass\n\n        await self._store.write(work)\n        await self._store.write(lambda tx: [self._call(tx, event) for event in wanted])",
    ),
    Break(
        "work and end of a job are one transaction",
        "jobs/worker.py",
        "                _call(result.work, tx)\n",
        "                pass\n",
    ),
    Break(
        "no tenant sees another",
        "store/scope.py",
        '("tenant = ?", (principal.tenant,))',
        '("tenant = tenant OR tenant = ?", (principal.tenant,))',
    ),
    Break(
        "a wildcard matches no outsider", "bus/filter.py", "and not pattern.startswith(OUTSIDE)", 'and pattern == ""'
    ),
    Break(
        "outsiders write to their own stream", "store/scope.py", 'or event.stream != f"{OUTSIDE}{principal.tenant}"', ""
    ),
    Break("a read cannot write", "store/sqlite.py", 'run("PRAGMA query_only = ON")', 'run("PRAGMA query_only = OFF")'),
    Break("an answered cancellation holds", "store/job.py", '"AND is_cancelling = 0"', '""'),
    Break("a revoked key opens nothing", "accounts/keys.py", "key.revoked_at is not None or ", ""),
    Break(
        "a backup that is not whole is refused",
        "store/backup.py",
        '    if last != {"rows": rows, "sha256": digest.hexdigest()}:',
        "    if last is None:",
        "tests/faults/test_restore.py tests/unit/cli/test_db.py",
    ),
    Break(
        "one server works on a file",
        "app/core.py",
        "        lock.acquire(self.clock.now())\n",
        "",
        "tests/unit/cli/test_up.py tests/faults/test_two_processes.py",
    ),
    Break(
        "no secret reaches the log",
        "telemetry/redactor.py",
        "def _percent_byte(byte: int) -> str:",
        'def _percent_byte(byte: int) -> str:\n    return "%%"',
        "tests/unit/telemetry",
    ),
    Break(
        "a tool does nothing that was not judged",
        "effects/executor.py",
        "                await self._require(effect, situation, context)\n            await",
        "                pass\n            await",
        EFFECTS,
    ),
    Break(
        "a tool is refused where a person says no",
        "effects/executor.py",
        'if said.state != "given":',
        'if said.state == "never":',
        EFFECTS,
    ),
    Break(
        "a tool is asked about once for each yes",
        "effects/approving.py",
        'if asked.pattern or decision.scope == "once" else replace(decision, scope="once")',
        "if asked.pattern is not None else decision",
        EFFECTS,
    ),
    Break(
        "a tool gets no late yes",
        "effects/approving.py",
        "if self._clock.monotonic() - began > self._patience:",
        "if self._clock.monotonic() - began > 99 * self._patience:",
        EFFECTS,
    ),
    Break(
        "a tool gets no second answer",
        "effects/approving.py",
        "return decision if is_first else",
        "return decision if True else",
        EFFECTS,
    ),
    Break(
        "a tool shows nothing that deceives the eye",
        "effects/shown.py",
        "return _cut(escaped(_drawn(effect)))",
        "return _cut(_drawn(effect))",
        EFFECTS,
    ),
    Break(
        "a tool reaches no secrets",
        "effects/policy.py",
        '    if situation.grounds.is_secret(path, situation.workspace):\n        return "secret"\n    if path',
        "    if path",
        EFFECTS,
    ),
    Break(
        "a tool reaches no private address",
        "effects/policy.py",
        "if places.is_private(host):",
        "if places.is_private('github.com'):",
        EFFECTS,
    ),
    Break(
        "a tool's yes never covers an interpreter",
        "effects/shell.py",
        "if not INTERPRETERS.isdisjoint(self.programs) or self.writes:",
        "if self.writes:",
        EFFECTS,
    ),
    Break(
        "a tool that only reads follows no link",
        "effects/policy.py",
        "os.path.realpath(effect.cwd / word)",
        "os.path.normpath(effect.cwd / word)",
        EFFECTS,
    ),
    Break(
        "a tool's secrets do not reach the model",
        "effects/executor.py",
        "text = self._around.clean(done.result.text)",
        "text = done.result.text",
        EFFECTS,
    ),
    Break(
        "a tool's long answer is kept whole",
        "effects/spill.py",
        "path = await self.keep(session, whole, name=name)",
        "path = await self.keep(session, whole[:1000], name=name)",
        EFFECTS,
    ),
    Break(
        "a tool overwrites nothing newer unseen",
        "tools/writing.py",
        "if old is not None and seen.is_stale(context.session, path, old):",
        "if old is None:",
        TOOLS,
    ),
    Break(
        "a tool's patch is made as a whole or not at all",
        "tools/change.py",
        "lost = await _undo(done, context)",
        "lost = []",
        TOOLS,
    ),
    Break(
        "a tool sees the processes of its own session only",
        "tools/process.py",
        "        if name not in states:",
        "        if name == '':",
        TOOLS,
    ),
    Break(
        "a tool asks before it speaks to what nothing holds",
        "tools/process.py",
        "arguments.session_id in shells.unheld",
        "arguments.session_id == ''",
        TOOLS,
    ),
    Break(
        "a checkpoint notices every change",
        "machines/checkpoint.py",
        "    if kept.state == state:\n        return True",
        "    if kept.state.size == state.size:\n        return True",
        CHECKPOINTS,
    ),
    Break(
        "a checkpoint brings back nothing damaged",
        "machines/checkpoint.py",
        "if _digest(content) != kept.digest:",
        "if False:",
        CHECKPOINTS,
    ),
    Break(
        "a checkpoint never removes what it does not hold",
        "machines/checkpoint.py",
        "    if wanted.is_complete:",
        "    if True:",
        CHECKPOINTS,
    ),
)


def is_noticed(one: Break, folder: Path) -> bool:
    target = folder / "src" / "hermes" / one.file
    text = target.read_text()
    if text.count(one.there) != 1:
        sys.exit(
            f"{one.promise}: its text stands {text.count(one.there)} times in {one.file}; mend scripts/break_promises.py"
        )
    target.write_text(text.replace(one.there, one.instead))
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}  # noqa: TID251 - handed on
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-m",
        "not slow and not faults",
        "--timeout",
        "30",
        *one.tests.split(),
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    target.write_text(text)
    if done.returncode not in {0, 1}:
        sys.exit(f"{one.promise}: the tests could not run:\n{done.stdout[-2000:]}")
    return done.returncode == 1


def main(words: list[str]) -> int:
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="hermes-broken-") as name:
        folder = Path(name)
        for part in ("src", "tests", "scripts", "pyproject.toml"):
            source = ROOT / part
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / part, ignore=ignore) if source.is_dir() else shutil.copy(
                source, folder / part
            )
        for one in BREAKS:
            if words and not any(word in one.promise for word in words):
                continue
            began = time.monotonic()
            noticed = is_noticed(one, folder)
            unnoticed += not noticed
            print(
                f"{'noticed' if noticed else 'UNNOTICED':9}  {one.promise}  ({time.monotonic() - began:.0f} s)",
                flush=True,
            )
    return 1 if unnoticed else 0


sys.exit(main(sys.argv[1:]))
