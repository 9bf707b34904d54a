"""What a set needs around it: an engine, the Secrets it names, and the objects it is made of."""

from __future__ import annotations

from collections.abc import Callable

from paddlecloud.controllers.sampleset import names, objects, transfer
from paddlecloud.controllers.sampleset.draft import Draft
from paddlecloud.kube.resource import Object

AGAIN, LATER, MUCH_LATER = 5.0, 15.0, 60.0
"""Seconds until the next look at what nobody tells of: a Secret, an engine, somebody else's object."""


def check(draft: Draft) -> bool:
    case = draft.case
    settings = case.settings
    if case.driver == "local" and not case.options.local_root:
        text = f"no engine: CSIDriver {names.JUICEFS_DRIVER} is not installed, and the engine local is for one machine"
        draft.complain("Valid", "DriverNotExist", text, event="ErrorDriverNotExist")
        draft.look_again(LATER)
        return False
    if case.driver == "juicefs" and settings.secret is None:
        text = "spec.secretRef.name: the juicefs engine needs the Secret of its file system"
        draft.complain("Valid", "SecretNotExist", text, event="ErrorSecretNotExist")
        return False
    for secret in (settings.secret, settings.source_secret):
        if secret is not None and secret in case.observed.secrets and case.observed.secrets[secret] is None:
            text = f"Secret {secret.namespace}/{secret.name} does not exist"
            draft.complain("Valid", "SecretNotExist", text, event="ErrorSecretNotExist")
            draft.look_again(AGAIN)
            return False
    if case.driver == "juicefs" and settings.secret is not None:
        view = case.observed.secrets.get(settings.secret)
        lacking = [] if view is None else [key for key in transfer.FILE_SYSTEM_KEYS if key not in view.values]
        if lacking:
            text = f"Secret {settings.secret.namespace}/{settings.secret.name} lacks {', '.join(lacking)}"
            draft.complain("Valid", "SecretIncomplete", text, event="ErrorCreatePV")
            draft.look_again(AGAIN)
            return False
    return True


def provide(draft: Draft) -> bool:
    """Make what the phase needs and is not there; False when somebody else holds a name that is ours."""
    case, observed = draft.case, draft.case.observed
    draft.set(driver=case.driver, cache_dirs=list(case.cache_dirs) if case.driver == "local" else None)
    if case.alias in observed.taken:
        text = f"PersistentVolume {case.alias} exists and is not ours: rename the set or delete it"
        draft.complain("Bound", "NameTaken", text, event="ErrorPVAlreadyExist")
        draft.look_again(MUCH_LATER)
        return False
    runtime = names.runtime(case.settings.name)
    wanted: list[tuple[str, str, Object | None, Callable[[], Object]]] = [
        ("PV", case.alias, observed.volume, lambda: objects.build_volume(case)),
        ("PVC", case.settings.name, observed.claim, lambda: objects.build_claim(case)),
    ]
    if case.phase:
        wanted += [
            (
                "Secret",
                names.runtime(case.settings.name),
                observed.secret,
                lambda: objects.build_secret(case, observed.fresh_token),
            ),
            ("Service", names.service(case.settings.name), observed.service, lambda: objects.build_service(case)),
            ("StatefulSet", runtime, observed.stateful_set, lambda: objects.build_stateful_set(case)),
        ]
    for kind, name, found, build in wanted:
        if found is None:
            draft.plan.create.append(build())
        elif kind != "PV" and not case.is_ours(found):
            text = f"{kind} {name} exists and is not ours: rename the set or delete it"
            draft.complain(
                "Bound" if kind == "PVC" else "RuntimeReady", "NameTaken", text, event=f"Error{kind}AlreadyExist"
            )
            draft.look_again(MUCH_LATER)
            return False
    return True
