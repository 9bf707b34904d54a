"""Where a version came from: the keys of its `origin`, and how they are made of objects of Kubernetes. Pure.

`origin` is a flat map of texts. It was one before anything filled it, manifests that exist have what their authors
wrote in it, and every reader of a ModelVersion shows it as it is; a point in a key does what a level would. Keys:

    job, job-uid, job-namespace            the PaddleJob; the namespace only where it is not the version's
    image, image-id                        of its training container; the id as the node reports it
    command, env.NAME                      of that container, as the job's author wrote them, without secrets
    data                                   the SampleSets, separated by commas, and of each:
    data.SET.uid, .generation, .source     which object it was, and what it imported
    data.SET.revision, .changed            which state of its files (`status.content`), and since when it held them
    data.SET.files, .size, .imported       how much, and when the first import ended
    data.SET.listing                       SHA-256 of paths and sizes, where the program itself saw the files
    run, run-name, step                    of a pipeline: the Workflow's uid and name, and the step
    commit, commit-changed                 of the program's folder; whether files differed from the commit
    source, source-digest, tool.NAME       of a version that was made from another one: which, and by what versions

All of it is said by the client that pushes, with its own rights: a record for people who work together, no proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paddlecloud.api import names
from paddlecloud.api.training_pod import listed, mapping, mappings, training_container, training_pod
from paddlecloud.kube.literal_text import without_escapes
from paddlecloud.kube.resource import Object
from paddlecloud.kube.sizes import binary_size

MOST = 64
"""Entries; `ModelVersionSpec.origin` has no more."""
LONGEST = 1024
LONGEST_READ = 16 * LONGEST
"""Characters of a command or an address that are looked through for secrets."""
MOST_VARIABLES = 16

_SECRET = re.compile(r"(?i)(token|secret|passw|credential|auth|api[-_]?key|access[-_]?key|private[-_]?key)")
_GIVEN = re.compile(
    r"(?i)(?<![a-z0-9_-])(?=[a-z0-9_]*-[a-z0-9_-]*(?:token|secret|passw|credential|auth|key))"
    r"([a-z0-9_-]+(?:=|\s+))(\"[^\"]*\"|'[^']*'|\S+)"
)
"""It begins where a word does: with a beginning at every dash of a long word, time would be the cube of its length."""
_LOGIN = re.compile(r"(://)[^/\s:@]+(?::[^/\s@]*)?@")
_SYSTEM = ("PADDLE_", "PADDLECLOUD_", "KUBERNETES_", "FLAGS_selected")


def of_job(job: Object, pod: Object | None = None, *, namespace: str = "") -> dict[str, str]:
    """The job's own part. `pod` is one of its pods, of which the image's id is known; `namespace` the version's."""
    meta = job["metadata"]
    container = training_container(job)
    words = [str(word) for key in ("command", "args") for word in listed(container.get(key))]
    found = {"job": str(meta["name"]), "job-uid": str(meta.get("uid") or "")}
    if namespace and meta.get("namespace") not in (None, namespace):
        found["job-namespace"] = str(meta["namespace"])
    found["image"] = str(container.get("image") or "")
    found["image-id"] = image_id(pod, str(container.get("name") or ""))
    found["command"] = without_secrets(without_escapes(" ".join(words)))
    found |= _variables(mappings(container.get("env")))
    found |= of_run(job)
    return {key: value for key, value in found.items() if value}


def of_run(obj: Object) -> dict[str, str]:
    """The run and the step of a pipeline that an object was made for, as the launchers mark it."""
    marks = obj["metadata"].get("annotations") or {}
    found = {
        "run": str(marks.get(names.PIPELINE_STEP) or "").partition("/")[0],
        "run-name": str(marks.get(names.PIPELINE_RUN_NAME) or ""),
        "step": str(marks.get(names.PIPELINE_STEP_NAME) or ""),
    }
    return {key: value for key, value in found.items() if value} if found["run-name"] else {}


def of_step(pod: Object) -> dict[str, str]:
    """The run and the step of a pod of Argo; nothing for other pods."""
    meta = pod["metadata"]
    name = str((meta.get("labels") or {}).get("workflows.argoproj.io/workflow") or "")
    owners = [one for one in meta.get("ownerReferences") or () if one.get("kind") == "Workflow"]
    if not name or not owners:
        return {}
    node = str((meta.get("annotations") or {}).get("workflows.argoproj.io/node-name") or "")
    return {"run": str(owners[0]["uid"]), "run-name": name, "step": node.removeprefix(f"{name}.") or name}


def of_data(sets: Sequence[Object], job: Object | None = None) -> dict[str, str]:
    """SampleSets as they were when the pods of `job` started; without a note of that, as they are now."""
    found: dict[str, str] = {}
    for one in sets:
        found |= {f"data.{one['metadata']['name']}.{key}": value for key, value in _data_facts(one, job).items()}
    if sets:
        found["data"] = ",".join(str(one["metadata"]["name"]) for one in sets)
    return found


def _data_facts(one: Object, job: Object | None) -> dict[str, str]:
    meta, status = one["metadata"], one.get("status") or {}
    sizes, progress = status.get("cacheStatus") or {}, status.get("progress") or {}
    content = status.get("content") or {}
    seen = next((each for each in seen_by(job) if each.get("uid") == meta.get("uid")), content)
    synced = [c for c in status.get("conditions") or () if c.get("type") == "Synced" and c.get("status") == "True"]
    source = status.get("source") or ((one.get("spec") or {}).get("source") or {}).get("uri")
    facts = {
        "uid": meta.get("uid"),
        "generation": meta.get("generation"),
        "revision": seen.get("revision"),
        "source": without_secrets(str(source or "")),
        "files": seen.get("files"),
        "size": binary_size(seen["bytes"]) if "bytes" in seen else None,
        "imported": synced[0].get("lastTransitionTime") if synced else "",
        "changed": seen.get("changedAt"),
    }
    if seen.get("revision") == content.get("revision"):
        now = {
            "files": sizes.get("totalFiles") or progress.get("totalFiles"),
            "size": sizes.get("totalSize") or progress.get("totalBytes"),
        }
        facts |= {key: value for key, value in now.items() if not facts[key]}
    return {key: str(value) for key, value in facts.items() if value}


def seen_by(job: Object | None) -> list[dict[str, Any]]:
    """The SampleSets of a job as they were when its pods started."""
    return list(((job or {}).get("status") or {}).get("data") or ())


def claims_of(job: Object) -> list[str]:
    """The claims that its training program mounts, that of `sampleSetRef` first: some are those of SampleSets."""
    mounted = [mapping(one.get("persistentVolumeClaim")) for one in mappings(training_pod(job).get("volumes"))]
    referenced = mapping(mapping(job.get("spec")).get("sampleSetRef")).get("name")
    wanted = [referenced, *(one.get("claimName") for one in mounted)]
    return list(dict.fromkeys(name for name in wanted if name and isinstance(name, str)))


def image_id(pod: Object | None, container: str) -> str:
    """What the node says that the container's image is; empty before it runs."""
    for status in ((pod or {}).get("status") or {}).get("containerStatuses") or ():
        if status.get("name") == container:
            return str(status.get("imageID") or "").removeprefix("docker-pullable://")
    return ""


def without_secrets(text: str) -> str:
    """What looks like a password after a flag, or in an address, is left out; so is the rest of a very long text."""
    if len(text) > LONGEST_READ:
        text = f"{text[:LONGEST_READ].rpartition(' ')[0]} …"
    return _LOGIN.sub(r"\1…@", _GIVEN.sub(r"\1…", text))


def bounded(origin: Mapping[str, str]) -> dict[str, str]:
    """At most as many entries as a ModelVersion has, the first ones, with texts of bounded length."""
    kept = list(origin.items())[:MOST]
    return {key: value if len(value) <= LONGEST else value[: LONGEST - 1] + "…" for key, value in kept}


def data_names(origin: Mapping[str, str]) -> list[str]:
    """As many as an origin has entries: the text is its author's."""
    return list(dict.fromkeys(filter(None, origin.get("data", "").split(",", MOST)[:MOST])))


def data_facts(origin: Mapping[str, str], name: str) -> dict[str, str]:
    """What was recorded of one set."""
    prefix = f"data.{name}."
    return {key.removeprefix(prefix): value for key, value in origin.items() if key.startswith(prefix)}


def _variables(env: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Variables whose value is written in the job: those of Secrets are not, nor what looks like one."""
    found: dict[str, str] = {}
    for entry in env:
        name, value = str(entry.get("name") or ""), entry.get("value")
        if value is None or not name or name.startswith(_SYSTEM) or _SECRET.search(name):
            continue
        found[f"env.{name}"] = without_secrets(str(value))[:256]
    return dict(list(found.items())[:MOST_VARIABLES])
