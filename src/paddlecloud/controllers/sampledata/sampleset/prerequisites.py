"""What a set needs around it: an engine, the Secrets it names, and the objects it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from paddlecloud.controllers import grants
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import adoption, objects
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetCase
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetDraft
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.kube.resource import Object

AGAIN, LATER, MUCH_LATER = 5.0, 15.0, 60.0
"""Seconds until the next look at what no watch reports: a Secret, an engine, somebody else's object."""


def check(draft: SampleSetDraft) -> bool:
    case = draft.case
    settings = case.settings
    if case.driver == "local" and not case.options.local_root:
        text = f"no engine: CSIDriver {names.JUICEFS_DRIVER} is not installed, and the engine local is for one machine"
        draft.report_problem("Valid", "DriverNotExist", text, event="ErrorDriverNotExist")
        draft.requeue_after(LATER)
        return False
    if refused := _refused_folder(case):
        draft.report_problem("Valid", "FolderNotAllowed", refused, event="ErrorFolderNotAllowed")
        return False
    if case.phase != "Syncing" and (changed := case.changed_source):
        draft.report_problem("Valid", "SourceChanged", changed, event="ErrorSourceChanged")
        return False
    if case.imports and (refused := transfer.source_problem(settings.uri, case.options.sources)):
        draft.report_problem("Valid", "FolderNotAllowed", f"spec.source: {refused}", event="ErrorFolderNotAllowed")
        return False
    if case.imports and (folder := case.observed.missing_source):
        text = (
            f"spec.source.uri: {folder} does not exist on this machine: make the folder, or name another as "
            "file:///PATH; the import begins once it exists"
        )
        draft.report_problem("Valid", "SourceNotExist", text, event="ErrorSourceNotExist")
        draft.requeue_after(AGAIN)
        return False
    if case.imports and (file := case.observed.file_source):
        folder = file.rpartition("/")[0] or "/"
        text = f"spec.source.uri: {file} is a file: name the folder that holds it, file://{folder}"
        draft.report_problem("Valid", "SourceIsFile", text, event="ErrorSourceIsFile")
        draft.requeue_after(AGAIN)
        return False
    if case.observed.retained is not None and not _is_from_here(case, case.observed.retained):
        origin = case.observed.retained or "an unknown source (imported by an earlier release)"
        command = f"pdc sampleset rm-data {settings.name} -n {settings.namespace}"
        text = (
            f"a deleted SampleSet {settings.name} left data of {origin}: `{command}` removes it and the import begins; "
            "spec.noSync: true takes it over as it is; or give this set another name"
        )
        draft.report_problem("Valid", "DataRetained", text, event="ErrorDataRetained")
        draft.requeue_after(AGAIN)
        return False
    if case.driver == "juicefs" and settings.secret is None:
        text = "spec.secretRef.name: the juicefs engine needs the Secret of its file system"
        draft.report_problem("Valid", "SecretNotExist", text, event="ErrorSecretNotExist")
        return False
    for secret in sorted(case.secrets):
        if secret in case.observed.secrets and case.observed.secrets[secret] is None:
            reason, text = grants.refusal(secret, settings.namespace)
            draft.report_problem("Valid", reason, text, event=f"Error{reason}")
            draft.requeue_after(AGAIN)
            return False
    if case.driver == "juicefs" and settings.secret is not None:
        view = case.observed.secrets.get(settings.secret)
        lacking = [] if view is None else [key for key in transfer.FILE_SYSTEM_KEYS if key not in view.values]
        if lacking:
            text = f"Secret {settings.secret.namespace}/{settings.secret.name} lacks {', '.join(lacking)}"
            draft.report_problem("Valid", "SecretIncomplete", text, event="ErrorCreatePV")
            draft.requeue_after(AGAIN)
            return False
    return True


def _is_from_here(case: SampleSetCase, origin: str) -> bool:
    """Whether data was imported from the set's own source: a folder is the same with and without its last slash."""
    return origin.rstrip("/") == case.settings.uri.rstrip("/")


def _refused_folder(case: SampleSetCase) -> str:
    """Why a cache may not be kept where the set, or the volume that it has, wants it; empty where it may."""
    allowed = case.options.caches
    for named, folder in case.cache_folders.items():
        if case.driver == "local" and not case.settings.levels:
            continue  # it is below our own root, and nobody named it
        if problem := allowed.problem(named):
            return f"spec.cache: {problem}"
        if folder == named and allowed.is_root(folder):
            return (
                f"spec.cache: the volume of this set was made with the cache folder {folder}, which others use too; "
                "delete the set and make it again: its data stays, and the cache gets a folder of its own"
            )
    return ""


class _Part(NamedTuple):
    """An object that a set is made of: how events call its kind, and which condition lacks without it."""

    kind: str
    condition: str
    name: str
    found: Object | None
    build: Callable[[], Object]


def provide(draft: SampleSetDraft) -> bool:
    """Make what the phase needs and is not there; False when somebody else holds a name that is ours."""
    case = draft.case
    adoption.report(draft)
    draft.set(driver=case.driver, cache_dirs=list(case.cache_folders.values()))
    if case.alias in case.observed.taken:
        return _refuse(draft, "PersistentVolume", case.alias, condition="Bound", event="ErrorPVAlreadyExist")
    if case.observed.same_handle:
        others = ", ".join(case.observed.same_handle)
        text = (
            f"PersistentVolume {case.alias} has the volume handle of {others}, so that pods may be given the other's "
            "data: delete the set and apply it again; its data stays"
        )
        draft.report_problem("Bound", "HandleShared", text, event="ErrorHandleShared")
        draft.requeue_after(MUCH_LATER)
        return False
    if case.observed.volume is None:
        draft.plan.create.append(objects.build_volume(case))
    for part in _parts(case):
        if part.found is None:
            draft.plan.create.append(part.build())
        elif case.is_ours(part.found):
            draft.plan.patch.extend(adoption.take_over(case, part.found))
        else:
            event = f"Error{part.kind}AlreadyExist"
            return _refuse(draft, part.kind, part.name, condition=part.condition, event=event)
    return True


def _parts(case: SampleSetCase) -> Iterator[_Part]:
    """All but the volume, in the order in which they are needed."""
    name, observed = case.settings.name, case.observed
    yield _Part("PVC", "Bound", name, observed.claim, lambda: objects.build_claim(case))
    if not case.phase:
        return
    runtime, service, keys = names.runtime(name), names.service(name), names.runtime_keys(name)
    data = observed.fresh_access
    yield _Part("Secret", "RuntimeReady", keys, observed.secret, lambda: objects.build_secret(case, data))
    yield _Part("Service", "RuntimeReady", service, observed.service, lambda: objects.build_service(case))
    yield _Part("StatefulSet", "RuntimeReady", runtime, observed.stateful_set, lambda: objects.build_stateful_set(case))


def _refuse(draft: SampleSetDraft, kind: str, name: str, *, condition: str, event: str) -> bool:
    text = f"{kind} {name} exists and is not ours: rename the set or delete it"
    draft.report_problem(condition, "NameTaken", text, event=event)
    draft.requeue_after(MUCH_LATER)
    return False
