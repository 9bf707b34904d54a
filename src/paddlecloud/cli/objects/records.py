"""Whose records of VisualDL a command line means: PaddleJobs, and claims, which keep them when the job is gone."""

from __future__ import annotations

from collections.abc import Sequence

from paddlecloud.cli.objects import targets
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import PADDLEJOBS, PERSISTENTVOLUMECLAIMS, Object
from paddlecloud.visualdl import folders
from paddlecloud.visualdl.server import IMAGE


def records_of(session: Session, words: Sequence[str]) -> list[Object]:
    """`JOB`, `pdj/JOB` or `pvc/CLAIM`, each once; a claim as `folders.of_claim` has it."""
    api, found = session.api, {}
    for word in words:
        kind, slash, name = word.rpartition("/")
        if slash and api.entry(kind).resource.full_name == PERSISTENTVOLUMECLAIMS.full_name:
            claim = api.do(api.client.get(PERSISTENTVOLUMECLAIMS, name, session.namespace))
            found[PERSISTENTVOLUMECLAIMS.kind, name] = folders.of_claim(claim, IMAGE)
            continue
        name = targets.name_in(api, word, PADDLEJOBS)
        found[PADDLEJOBS.kind, name] = api.do(api.client.get(PADDLEJOBS, name, session.namespace))
    return list(found.values())
