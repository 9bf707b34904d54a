"""Orders to a cache server: kept on disk, carried out one after the other, taken up again after a crash.

A job is a file in the server's own folder, written whole before the order is acknowledged. Work that was under way
when the server died is done again: every kind of work skips what is done already. Keys that came with an order lie
beside it, readable by us alone, until the job has ended; they are part of no answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from paddlecloud.cache import options as options_
from paddlecloud.cache.engines.base import Engine
from paddlecloud.cache.errors import BadOptions, Cancelled, Conflict, WorkFailed
from paddlecloud.cache.progress import Task
from paddlecloud.storage import credentials as credentials_
from paddlecloud.storage.credentials import Credentials, redact
from paddlecloud.storage.errors import StorageError

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
KEPT = 200
"""Finished jobs that are remembered."""
MOST_ATTEMPTS = 5
"""A job during which the server died so often is given up: it may be the reason."""
FINAL = ("Succeeded", "Failed", "Cancelled")


@dataclass
class Job:
    id: str
    type: str
    options: dict[str, Any]
    number: int
    state: str = "Queued"
    message: str = ""
    notices: list[str] = field(default_factory=list)
    attempts: int = 0
    started: str | None = None
    finished: str | None = None
    progress: dict[str, Any] = field(default_factory=lambda: Task().progress.shown())
    coverage: dict[str, Any] | None = None


class Jobs:
    """`fixed` are the keys that every sync without its own uses: the mounted Secret of the set."""

    def __init__(
        self, folder: Path, engine: Engine, *, fixed: Callable[[], Credentials] = credentials_.from_folder
    ) -> None:
        self._folder = folder
        self._engine = engine
        self._fixed = fixed
        self._changed = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._running: tuple[Job, Task] | None = None
        self._stopping = False
        self.ended = 0
        """How many have ended since the start; counted before their state shows it."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        with self._changed:
            self._load()
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 20.0) -> None:
        """End what runs; it stays queued and is taken up by the next start."""
        with self._changed:
            self._stopping = True
            if self._running:
                self._running[1].cancel()
            self._changed.notify_all()
        self._thread.join(timeout)

    # Orders

    def put(self, job_id: str, kind: str, raw: Any, keys: Mapping[str, str] | None = None) -> Job:
        """Accept an order; the same one again is the same job. Raises `BadOptions`, `Conflict`."""
        if not ID.fullmatch(job_id):
            raise BadOptions(f"job id {job_id!r} must be letters, digits, dots, dashes and underscores")
        parsed, notices = options_.parse(kind, raw)
        self._engine.check(kind, parsed)
        with self._changed:
            known = self._jobs.get(job_id)
            if known is not None:
                if (known.type, known.options) != (kind, raw):
                    raise Conflict(f"job {job_id} exists with other options; use another id")
                return known
            job = Job(job_id, kind, dict(raw), self._next_number(), notices=notices)
            if keys:
                self._write(f"{job_id}.keys", json.dumps(dict(keys)))
            self._save(job)
            self._jobs[job_id] = job
            self._changed.notify_all()
            return job

    def cancel(self, job_id: str) -> Job | None:
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None or job.state in FINAL:
                return job
            if self._running and self._running[0] is job:
                self._running[1].cancel()
            else:
                self._finish(job, "Cancelled", "cancelled before it began")
            return job

    def cancel_all(self) -> None:
        for job in self.all():
            self.cancel(job.id)

    def get(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def all(self) -> list[Job]:
        with self._changed:
            return sorted(self._jobs.values(), key=lambda job: job.number)

    def position(self, job: Job) -> int:
        """How many are before it; 0 for the one at work."""
        if job.state != "Queued":
            return 0
        return sum(1 for other in self.all() if other.state in ("Queued", "Running") and other.number < job.number)

    def shown(self, job: Job) -> dict[str, Any]:
        """As the API returns it."""
        running = self._running
        task = running[1] if running and running[0] is job else None
        return {
            "id": job.id,
            "type": job.type,
            "state": job.state,
            "position": self.position(job),
            "message": job.message,
            "notices": job.notices,
            "progress": task.progress.shown() if task else job.progress,
            "coverage": task.coverage if task else job.coverage,
            "started": job.started,
            "finished": job.finished,
        }

    # Work

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._next() is not None)
                if self._stopping:
                    return
                job = self._next()
                assert job is not None
                task = Task()
                self._running = (job, task)
                job.state, job.started, job.attempts = "Running", job.started or _now(), job.attempts + 1
                self._save(job)
            state, message = self._carry_out(job, task)
            with self._changed:
                self._running = None
                job.progress, job.coverage = task.progress.shown(), task.coverage
                job.notices += task.notices
                if state == "Cancelled" and self._stopping:
                    job.state = "Queued"  # not the order was taken back, the server goes
                    job.attempts -= 1
                    self._save(job)
                else:
                    self._finish(job, state, message)

    def _carry_out(self, job: Job, task: Task) -> tuple[str, str]:
        keys = self._keys(job)
        try:
            parsed, _ = options_.parse(job.type, job.options)
            if isinstance(parsed, options_.SyncOptions):
                self._engine.sync(parsed, keys, task)
            elif isinstance(parsed, options_.WarmupOptions):
                self._engine.warmup(parsed, task)
            elif job.type == "rmr":
                self._engine.rmr(parsed, task)
            else:
                self._engine.clear(parsed, task)
        except Cancelled:
            return "Cancelled", "cancelled"
        except (WorkFailed, BadOptions) as error:
            return "Failed", redact(str(error), keys)
        except StorageError as error:
            return "Failed", redact(f"{error.reason}: {error}", keys)
        except OSError as error:
            return "Failed", redact(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", keys)
        except Exception as error:  # a defect of ours must not end the server: others wait
            print(redact(traceback.format_exc(), keys), flush=True)
            return "Failed", redact(f"unexpected {type(error).__name__}: {error}", keys)
        return "Succeeded", ""

    def _keys(self, job: Job) -> Credentials:
        path = self._folder / f"{job.id}.keys"
        return credentials_.from_values(json.loads(path.read_text())) if path.exists() else self._fixed()

    def _next(self) -> Job | None:
        queued = [job for job in self._jobs.values() if job.state == "Queued"]
        return min(queued, key=lambda job: job.number, default=None)

    # On disk

    def _finish(self, job: Job, state: str, message: str) -> None:
        finished = _now()
        self._save(replace(job, state=state, message=message, finished=finished))
        with contextlib.suppress(FileNotFoundError):
            (self._folder / f"{job.id}.keys").unlink()
        self.ended += 1
        job.message, job.finished, job.state = message, finished, state  # seen as ended when its keys are gone
        ended = sorted((each for each in self._jobs.values() if each.state in FINAL), key=lambda each: each.number)
        for old in ended[:-KEPT]:
            del self._jobs[old.id]
            with contextlib.suppress(FileNotFoundError):
                (self._folder / f"{old.id}.json").unlink()
        self._changed.notify_all()

    def _next_number(self) -> int:
        return max((job.number for job in self._jobs.values()), default=0) + 1

    def _save(self, job: Job) -> None:
        self._write(f"{job.id}.json", json.dumps(job.__dict__))

    def _write(self, name: str, text: str) -> None:
        draft = self._folder / f".{name}.draft"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self._folder / name)

    def _load(self) -> None:
        for path in self._folder.glob("*.json"):
            try:
                job = Job(**json.loads(path.read_text()))
            except (ValueError, TypeError):
                path.rename(path.with_suffix(".broken"))  # kept to be looked at; it blocks nothing
                continue
            self._jobs[job.id] = job
            if job.state == "Running":
                job.state = "Queued"
                if job.attempts >= MOST_ATTEMPTS:
                    self._finish(job, "Failed", f"the server ended {job.attempts} times during this job; giving up")


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
