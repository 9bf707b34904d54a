"""What a SampleJob asks of the cache servers: which of them, and what. Pure."""

from __future__ import annotations

from typing import Any

from paddlecloud.api.samplejob import SampleJobSettings
from paddlecloud.api.sampleset import MAX_PARTITIONS, SampleSetSettings, Secret
from paddlecloud.controllers.node_folders import named_by
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetCase, SecretView
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.controllers.sampledata.servers.requests import Work

NAME_IN_EVENTS = {"sync": "SyncJob", "warmup": "WarmupJob", "rmr": "RmrJob", "clear": "ClearJob"}
"""How the reasons of events call the types."""
EVERYWHERE = frozenset({"warmup", "clear"})
"""Types that every cache server has a part in; the others are done by the first."""
_NUMBERS = frozenset({"threads", "bwlimit"})


def targets(type: str, partitions: int) -> range:
    return range(partitions if type in EVERYWHERE else 1)


def given_to(partitions: int | None) -> range:
    """The cache servers that the work was given to, by the number in its status."""
    return range(min(partitions or 1, MAX_PARTITIONS))


def secret_of(settings: SampleJobSettings, of_set: SampleSetSettings | None) -> Secret | None:
    """The Secret with the keys of the source: the job's own, or that of the set whose own source is synced."""
    if settings.secret or of_set is None or settings.type != "sync" or settings.source:
        return settings.secret
    return of_set.source_secret


def build(
    uid: str, settings: SampleJobSettings, case: SampleSetCase, *, partitions: int, secret: SecretView, again: str
) -> Work:
    """The work as it is handed to each target. Raises `BadOptions`. Another value of `again` makes it another job."""
    options = _OPTIONS[settings.type](settings, case, partitions)
    id = names.job_id(uid, settings.type, options, secret.version, again)
    return Work(id, settings.type, options, transfer.credentials(secret.values))


def _sync(settings: SampleJobSettings, case: SampleSetCase, partitions: int) -> dict[str, Any]:
    options = {key: int(value) if key in _NUMBERS else value for key, value in settings.sync_options.items()}
    return transfer.sync_options(
        case.settings,
        source=settings.source,
        destination=settings.destination,
        options=options,
        sources=case.options.sources,
    )


def _warmup(settings: SampleJobSettings, case: SampleSetCase, partitions: int) -> dict[str, Any]:
    wanted, name = settings.warmup, case.settings.name
    options: dict[str, Any] = {
        "paths": [transfer.data_path(name, path) for path in wanted.paths] or [names.data_dir(name)],
        "partitions": partitions,
        "strategyName": wanted.strategy,
        "threads": wanted.threads,
    }
    if wanted.file:
        options["file"] = transfer.data_path(name, wanted.file)
    if wanted.seed is not None:
        options["seed"] = wanted.seed
    if wanted.strategy == "sampler":
        options |= {
            "batchSize": wanted.batch_size,
            "shuffle": wanted.shuffle,
            "epochs": wanted.epochs,
            "ranksPerNode": wanted.ranks_per_node,
        }
    return options


def _rmr(settings: SampleJobSettings, case: SampleSetCase, partitions: int) -> dict[str, Any]:
    return {"paths": [transfer.data_path(case.settings.name, path) for path in settings.paths]}


def _clear(settings: SampleJobSettings, case: SampleSetCase, partitions: int) -> dict[str, Any]:
    space, name = case.settings.namespace, case.settings.name
    known = tuple(named_by(folder, space, name) or folder for folder in case.old.cache_dirs or ())
    return {"paths": transfer.clear_paths(settings.paths, known or case.cache_dirs)}


_OPTIONS = {"sync": _sync, "warmup": _warmup, "rmr": _rmr, "clear": _clear}
