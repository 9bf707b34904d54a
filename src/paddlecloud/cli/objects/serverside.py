"""Server-side apply of one manifest: what `apply` does for good and `diff` does as a dry run."""

from __future__ import annotations

import argparse
import time
from typing import Literal, NamedTuple

from paddlecloud.cli.failures import INVALID, CliError, attempting
from paddlecloud.cli.objects import pod_fields, suggestions
from paddlecloud.cli.objects.lines import lines_of, without
from paddlecloud.cli.objects.manifests import ManifestDocument
from paddlecloud.cli.objects.placing import ObjectRef, place_of
from paddlecloud.cli.session import Session
from paddlecloud.kube.discovery import UnknownKind
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.sdk import ownership

KIND_SECONDS = 10.0
"""How long a kind may take to appear after its CRD was applied in the same run."""

Validation = Literal["Strict", "Warn", "Ignore"]
VALIDATION: dict[str, Validation] = {"strict": "Strict", "warn": "Warn", "ignore": "Ignore"}
VOLATILE = ("managedFields", "resourceVersion", "generation")


class Applied(NamedTuple):
    place: ObjectRef
    before: Object | None
    after: Object
    manifest: ManifestDocument

    @property
    def action(self) -> str:
        if self.before is None:
            return "created"
        return "unchanged" if comparable(self.before) == comparable(self.after) else "configured"


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server-side", action="store_true", help="ignored; pdc always applies server-side")
    parser.add_argument("--force-conflicts", action="store_true", help="take over fields that another tool owns")
    parser.add_argument("--field-manager", default="pdc", metavar="NAME", help="owner of the fields (default pdc)")
    parser.add_argument("--validate", choices=tuple(VALIDATION), default="strict", help="unknown fields: error or not")


class Applier:
    """Applies manifests in order; a kind whose CRD it applied itself a moment ago is waited for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._defined: set[str] = set()

    def apply(self, manifest: ManifestDocument, *, dry_run: bool) -> Applied:
        validation = VALIDATION[self._session.args.validate]
        self._check_pods(manifest, validation)
        try:
            applied = self._attempt(manifest, dry_run=dry_run, validation=validation)
        except CliError as failure:
            self._complete(manifest, failure)
            if failure.reason == UnknownKind.reason and "did you mean" in failure.why:
                failure.next = "pdc api-resources"
            raise
        if manifest.object["kind"] == "CustomResourceDefinition" and not dry_run:
            self._defined.add(str(((manifest.object.get("spec") or {}).get("names") or {}).get("kind")))
        return applied

    def _check_pods(self, manifest: ManifestDocument, validation: Validation) -> None:
        """Treats unknown fields of embedded pods as the server treats those of the object itself."""
        unknown = pod_fields.unknown_fields(self._session.api, manifest.object) if validation != "Ignore" else []
        if unknown and validation == "Strict":
            raise self._refusal(manifest, unknown)
        for field in unknown:
            self._session.warn(f'unknown field "{field.path}"' + (f"; {field.meant}" if field.meant else ""))

    def _refusal(self, manifest: ManifestDocument, unknown: list[pod_fields.Unknown]) -> CliError:
        """In the server's words, together with what the server itself refuses of the object."""
        listed = ", ".join(f'unknown field "{field.path}"' for field in unknown)
        failure = CliError(
            f"cannot apply {manifest.label} from {manifest.source}",
            why=f"strict decoding error: {listed}",
            next=unknown[0].next,
            exit_code=INVALID,
            reason="BadRequest",
        )
        for field in unknown:
            named = f"{field.path}: {field.meant}" if len(unknown) > 1 else field.meant
            suggestions.append(failure, named if field.meant else "")
        fields = [field.path for field in unknown]
        try:
            self._attempt(manifest, dry_run=True, validation="Strict")
        except CliError as further:
            if further.exit_code != INVALID:
                return further
            fields += self._explain(manifest, further)
            suggestions.append(failure, further.why)
        self._add_lines(manifest, failure, fields)
        return failure

    def _attempt(self, manifest: ManifestDocument, *, dry_run: bool, validation: Validation) -> Applied:
        with attempting(f"apply {manifest.label} from {manifest.source}", hints=_hints(manifest.argument)):
            return self._apply(manifest, dry_run=dry_run, validation=validation)

    def _complete(self, manifest: ManifestDocument, failure: CliError) -> None:
        """Adds to a refusal what else is wrong with the object, and at which lines of the file."""
        self._add_lines(manifest, failure, self._explain(manifest, failure))

    def _explain(self, manifest: ManifestDocument, failure: CliError) -> list[str]:
        """Adds the right words and what else is wrong; the fields at fault.

        Servers refuse unknown fields before they look at the values of the others: those are sent once more, alone.
        """
        fields = suggestions.fields_at_fault(failure)
        suggestions.add_fields(self._session, failure, manifest.object)
        if unknown := suggestions.unknown_fields(failure):
            known = manifest._replace(object=without(manifest.object, unknown))
            try:
                self._attempt(known, dry_run=True, validation="Ignore")
            except CliError as further:
                if further.reason == "Invalid":
                    suggestions.append(failure, further.why)
                    fields += suggestions.fields_at_fault(further)
        return fields

    @staticmethod
    def _add_lines(manifest: ManifestDocument, failure: CliError, fields: list[str]) -> None:
        lines = lines_of(manifest, fields)
        if lines:
            first, source = min(lines.values()), manifest.source
            failure.message = failure.message.replace(f"from {source}", f"from {manifest.file}:{first}")
        if len(set(lines.values())) > 1:
            listed = ", ".join(f"{path.lstrip('.')} in line {line}" for path, line in lines.items())
            suggestions.append(failure, listed)

    def _apply(self, manifest: ManifestDocument, *, dry_run: bool, validation: Validation) -> Applied:
        session, args = self._session, self._session.args
        where = place_of(session, manifest, self._resource(manifest.object))
        before = read(session, where)
        call = ownership.apply(
            session.api.client,
            where,
            body_of(manifest.object, where),
            field_manager=args.field_manager,
            force=args.force_conflicts,
            dry_run=dry_run,
            field_validation=validation,
        )
        return Applied(where, before, session.api.do(call), manifest)

    def _resource(self, obj: Object) -> Resource:
        deadline = time.monotonic() + KIND_SECONDS
        while True:
            try:
                return self._session.api.resource_of(obj)
            except UnknownKind:
                if obj["kind"] not in self._defined or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
                self._session.api.rediscover()


def read(session: Session, where: ObjectRef) -> Object | None:
    try:
        return session.api.do(session.api.client.get(where.resource, where.name, where.namespace))
    except NotFound:
        return None


def body_of(obj: Object, where: ObjectRef) -> Object:
    """What is sent: the file's own words, less what a server never takes back."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if where.namespace:
        meta["namespace"] = where.namespace
    return {**obj, "metadata": meta}


def comparable(obj: Object) -> Object:
    """An object without what changes on every write, and without status, which is not the file's to change."""
    kept = {key: value for key, value in obj.items() if key != "status"}
    return {**kept, "metadata": {key: value for key, value in obj["metadata"].items() if key not in VOLATILE}}


def _hints(file: str) -> dict[str, str]:
    return {
        "Conflict": f"pdc apply --force-conflicts -f {file}    (takes the fields over from their owner)",
        "NotFound": "pdc get namespaces    (the namespace must exist first)",
        "UnknownKind": "pdc crds | pdc apply -f -    (if it is a kind of PaddleCloud), else pdc api-resources",
    }
