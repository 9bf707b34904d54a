"""The API server without a network: `handle(Request) -> Response`.

Order of every request: parse the path, authorise, dispatch by verb, audit. Both the HTTPS edge and the in-process
transport come through here, so nobody gets round authorisation or the audit log by being in the same process.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.field_selectors import FieldSelector
from paddlecloud.kube.resource import Object
from paddlecloud.kube.timeslice import TimeSlice
from paddlecloud.local.apiserver.auth.audit import AuditLog
from paddlecloud.local.apiserver.auth.authentication import User, open_to_anonymous
from paddlecloud.local.apiserver.auth.authorization import Attributes, Authorizer, forbidden, impersonate
from paddlecloud.local.apiserver.discovery import groups, openapi
from paddlecloud.local.apiserver.http import negotiation
from paddlecloud.local.apiserver.http.duplicates import duplicate_fields
from paddlecloud.local.apiserver.http.list_options import check_list_options, exact_revision, revision_of
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.options import delete_options, patcher, write_options
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response, no_route, parse
from paddlecloud.local.apiserver.http.responses import (
    failure,
    partial_metadata,
    partial_value,
    success,
    value_of,
    version,
    warning_headers,
)
from paddlecloud.local.apiserver.http.routing import check_method, check_subresource, check_verb, find_kind
from paddlecloud.local.apiserver.http.shares import tenant_of
from paddlecloud.local.apiserver.metrics import ApiMetrics
from paddlecloud.local.apiserver.objects import scale, watching
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.objects.large import runner
from paddlecloud.local.apiserver.objects.listing import Pages, Selection, filled, listed, records_after, resumes
from paddlecloud.local.apiserver.objects.long_lists import LongLists
from paddlecloud.local.apiserver.objects.selection import Filter
from paddlecloud.local.apiserver.objects.verbs import Verbs, address_of, check_name
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.apiserver.table import table
from paddlecloud.local.store.record import Record
from paddlecloud.local.store.store import Store

log = logging.getLogger(__name__)

CLIENT_LEFT = 499  # in the audit log: nobody was there to answer

RETURNED_WHEN_DELETED = frozenset(
    (
        "Pod", "Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim", "ResourceQuota",
        "StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "PodTemplate",
    )
)  # fmt: skip
"""Kinds whose deletion is answered with the object; all others answer with a Status once they are gone."""

Handler = Callable[[Request, RequestInfo, KindInfo], Awaitable[Response]]
"""A subresource or a kind that is answered rather than stored."""


@dataclass(slots=True)
class Extensions:
    """What other parts of the platform add: (group, resource, subresource) → handler.

    Streaming subresources (log, exec, port-forward) and the virtual kinds (access and token reviews) register here.
    """

    handlers: dict[tuple[str, str, str], Handler] = field(default_factory=dict)
    paths: dict[str, Callable[[Request], Awaitable[Response]]] = field(default_factory=dict)


class Api:
    def __init__(
        self,
        *,
        store: Store,
        registry: Registry,
        verbs: Verbs,
        authorizer: Authorizer,
        audit: AuditLog,
        clock: Clock,
        extensions: Extensions,
        metrics: ApiMetrics,
    ) -> None:
        self._turns = watching.Turns()
        self._long_lists = LongLists()
        self.store = store
        self.registry = registry
        self.verbs = verbs
        self.clock = clock
        self.extensions = extensions
        self._authorizer = authorizer
        self._audit = audit
        self._metrics = metrics
        self._pages = Pages(clock)
        self._discovery = groups.Discovery(registry)
        self._openapi = openapi.OpenApi(registry)

    async def handle(self, request: Request) -> Response:
        started = time.perf_counter()
        info = None
        try:
            info = parse(request.method, request.path, request.query)
            acting_as = impersonate(self._authorizer, request.user, request.headers)
            if acting_as is not request.user:
                request.impersonator, request.user = request.user, acting_as
            self._authorise(request.user, info)
            answer = await self._dispatch(request, info)
        except ApiError as error:
            answer = failure(error)
        except RecursionError:
            answer = failure(errors.BadRequest("the object is nested too deeply"))
        except asyncio.CancelledError:  # the client left; what it asked for may have happened all the same
            self._note(request, info, CLIENT_LEFT, time.perf_counter() - started)
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            answer = failure(errors.InternalError("the server failed; its log says why"))
        self._note(request, info, answer.status, time.perf_counter() - started)
        return answer

    def refuse(self, request: Request, error: ApiError) -> Response:
        """The answer to a request that never came this far, noted like any other: bad credentials, a body too long."""
        try:
            info: RequestInfo | None = parse(request.method, request.path, request.query)
        except ApiError:
            info = None
        self._note(request, info, error.code, 0.0)
        return failure(error)

    def _note(self, request: Request, info: RequestInfo | None, code: int, seconds: float) -> None:
        kind = self.registry.find(info.group, info.version, info.resource) if info and info.is_resource else None
        self._metrics.observe(info, kind, code, seconds)
        self._audit.record(
            user=request.impersonator or request.user,
            impersonated=request.user if request.impersonator else None,
            verb=info.verb if info else request.method.lower(),
            path=request.path,
            info=info,
            code=code,
            seconds=seconds,
            user_agent=request.header("user-agent"),
        )

    def _authorise(self, user: User, info: RequestInfo) -> None:
        if info.verb == "get" and not info.is_resource and open_to_anonymous(info.path):
            return
        wanted = Attributes(
            info.verb, info.group, info.resource, info.subresource, info.namespace, info.name,
            "" if info.is_resource else info.path,
        )  # fmt: skip
        decision = self._authorizer.allowed(user, wanted)
        if not decision.allowed:
            raise forbidden(user, wanted, decision.reason)

    async def _dispatch(self, request: Request, info: RequestInfo) -> Response:
        if not info.is_resource:
            return await self._non_resource(request, info)
        kind = find_kind(self.registry, info)
        handler = self.extensions.handlers.get((info.group, info.resource, info.subresource))
        if handler is None:
            check_subresource(info, kind)
        check_method(request.method, info)
        if handler is not None:
            return await handler(request, info, kind)
        request.body = await negotiation.with_long_yaml_read(request.body, request.header("content-type"))
        if info.subresource == "scale" and kind.scale is not None:
            return await scale.handle(self.verbs, request, info, kind)
        check_verb(info, kind)
        verb: Callable[[Request, RequestInfo, KindInfo], Awaitable[Response]] = getattr(self, f"_{info.verb}")
        return await verb(request, info, kind)

    # Objects -------------------------------------------------------------------------------------------------------

    async def _get(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        record = self.verbs.get(kind, info.namespace, info.name)
        return Response(body=self._renderer(kind, request)(record))

    async def _list(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        limit, token = request.number("limit") or 0, request.query.get("continue", "")
        at = exact_revision(request.query, limit=limit)
        selection = self._selection(request, info, kind)
        if token and not resumes(token):
            page = self._pages.next(selection, token, limit)
        else:
            records, revision = selection.records(self.store, kind, at=at)
            rest = records_after(token, records) if token else records
            page = self._pages.first(selection, rest, revision, limit, impersonator=request.impersonator)
        meta: Object = {"resourceVersion": str(page.revision)}
        if page.token:
            meta["continue"] = page.token
            meta["remainingItemCount"] = page.remaining
        accept = negotiation.accepted(request.header("accept"))
        render = value_of(kind)
        if accept.as_kind == "Table":
            empty = self._table([], kind, request, list_metadata=meta)
            render = self._row_renderer(kind, request)
        elif accept.as_kind:
            empty = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": []}
            render = partial_value
        else:
            empty = {"kind": kind.list_kind, "apiVersion": kind.resource.api_version, "metadata": meta, "items": []}
        tenant = tenant_of(request.impersonator or request.user)
        return await self._long_lists.answer(tenant, page.records, lambda: listed(empty, page.records, render))

    async def _watch(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        query = request.query
        check_list_options(query, watch=True)
        initial = request.flag("sendInitialEvents")
        since = None if initial else revision_of(query) or None
        if since is not None:
            self.store.check_revision(since)
        timeout = request.number("timeoutSeconds")
        selection = self._selection(request, info, kind)
        chosen = Filter(kind, selection.labels, selection.fields)
        stream = watching.stream(
            self.store, kind, selection.namespace, since=since, chosen=chosen,
            render=self._renderer(kind, request), bookmarks=request.flag("allowWatchBookmarks"),
            initial_events_end=initial, timeout=timeout, clock=self.clock, turns=self._turns,
        )  # fmt: skip
        return Response(stream=stream, content_type="application/json;stream=watch")

    async def _create(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.name:
            raise errors.MethodNotAllowed("create goes to the collection, without a name in the URL")
        options = write_options(request)
        read = partial(negotiation.read_object, request.body, request.header("content-type"))
        obj = await self._read(request, options, read)
        created = await self.verbs.create(kind, obj, namespace=info.namespace, options=options)
        return self._shown(request, kind, created, options, status=201)

    async def _update(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        options = write_options(request)
        read = partial(negotiation.read_object, request.body, request.header("content-type"))
        obj = await self._read(request, options, read)
        if not obj.get("metadata", {}).get("name"):
            raise errors.BadRequest("name must be provided")
        check_name(obj["metadata"], info.name)
        # The status of a Service is written by the strategy of the Service, which creates as well.
        if info.subresource in ("", "status") and self.verbs.created_by_update(kind, info.namespace, info.name):
            self._authorise(request.user, info._replace(verb="create"))
            created = await self.verbs.create(kind, obj, namespace=info.namespace, options=options)
            return self._shown(request, kind, created, options, status=201)
        unused = [obj]  # what was decided once is changed by that: a second attempt reads the body again
        updated = await self.verbs.update(
            kind, info.namespace, info.name, lambda _: unused.pop() if unused else read(), options=options,
            subresource=info.subresource,
        )  # fmt: skip
        return self._shown(request, kind, updated, options)

    async def _patch(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        options = write_options(request)
        media = negotiation.media_type(request.header("content-type"))
        if media == negotiation.APPLY_PATCH:
            return await self._apply(request, info, kind, options)
        mutate = patcher(media, await self._read(request, options, partial(negotiation.read_json, request.body)), kind)
        updated = await self.verbs.update(
            kind, info.namespace, info.name, mutate, options=options, subresource=info.subresource
        )
        return self._shown(request, kind, updated, options)

    async def _apply(self, request: Request, info: RequestInfo, kind: KindInfo, options: WriteOptions) -> Response:
        if not request.query.get("fieldManager"):
            raise errors.invalid(
                "PatchOptions",
                "",
                [("fieldManager", "FieldValueRequired", "Required value: is required for apply patch")],
                group="meta.k8s.io",
            )
        applied = await self._read(request, options, partial(negotiation.read_yaml, request.body))
        if not isinstance(applied, dict):
            raise errors.BadRequest("the body is not an object")
        obj, created = await self.verbs.apply(
            kind, info.namespace, info.name, applied, options=options, force=request.flag("force"),
            authorise_create=lambda: self._authorise(request.user, info._replace(verb="create")),
            subresource=info.subresource,
        )  # fmt: skip
        return self._shown(request, kind, obj, options, status=201 if created else 200)

    async def _delete(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        options = delete_options(request)
        obj, gone = await self.verbs.delete(kind, info.namespace, info.name, options)
        if not gone or (kind.kind in RETURNED_WHEN_DELETED and not kind.custom):
            return Response(body=encode(obj))
        resource, meta = kind.resource, obj["metadata"]
        details = {"name": info.name, "kind": resource.plural, "uid": meta["uid"]}
        if resource.group:
            details["group"] = resource.group
        return Response(body=encode(success(details)))

    async def _deletecollection(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        options = delete_options(request)
        records, _ = self._selection(request, info, kind).records(self.store, kind)
        deleted = []
        slice_ = TimeSlice()
        for record in records:
            await slice_.checkpoint()
            try:
                obj, _ = await self.verbs.delete(kind, record.address.namespace, record.address.name, options)
            except errors.NotFound:
                continue  # somebody else was faster: the outcome asked for
            deleted.append(encode(obj))
        meta = {"resourceVersion": str(self.store.revision)}
        empty = {"kind": kind.list_kind, "apiVersion": kind.resource.api_version, "metadata": meta, "items": []}
        return Response(body=filled(empty, deleted))

    def _selection(self, request: Request, info: RequestInfo, kind: KindInfo) -> Selection:
        """What a list, watch or deletecollection is about. A name that authorisation relied on is selected for sure."""
        labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        if info.name and not fields:
            fields = f"metadata.name={info.name}"
        elif info.name and FieldSelector.parse(fields).exact("metadata.name") != info.name:
            raise errors.BadRequest("fieldSelector metadata.name doesn't match requested name")
        return Selection.of(request.user, kind, info.namespace, labels=labels, fields=fields)

    async def _read(self, request: Request, options: WriteOptions, read: Callable[[], Any]) -> Any:
        """What a write sends."""
        run = runner(options.sent)
        if options.field_validation == "Strict":
            options.doubled = await run(duplicate_fields, request.body)
        return await run(read)

    def _table(self, objects: list[Object], kind: KindInfo, request: Request, **options: Any) -> Object:
        include = request.query.get("includeObject", "Metadata")
        if include not in table.INCLUDE:
            raise errors.BadRequest(f'includeObject must be one of {", ".join(table.INCLUDE)}, not "{include}"')
        return table.to_table(objects, kind, now=self.clock.now(), include_object=table.INCLUDE[include], **options)

    def _renderer(self, kind: KindInfo, request: Request) -> Callable[[Record], bytes]:
        """How one client wants to see one object. Of a watched table only the first event has the headers."""
        accept = negotiation.accepted(request.header("accept"))
        if not accept.as_kind:
            return value_of(kind)
        if accept.as_kind != "Table":
            return partial_value
        headers = itertools.chain((True,), itertools.repeat(False))

        def as_table(record: Record) -> bytes:
            meta = {"resourceVersion": str(record.rev)}
            return encode(self._table([_shown(kind, record)], kind, request, list_metadata=meta, headers=next(headers)))

        return as_table

    def _row_renderer(self, kind: KindInfo, request: Request) -> Callable[[Record], bytes]:
        return lambda record: encode(self._table([_shown(kind, record)], kind, request, headers=False)["rows"][0])

    def _shown(
        self, request: Request, kind: KindInfo, obj: Object, options: WriteOptions, *, status: int = 200
    ) -> Response:
        accept = negotiation.accepted(request.header("accept"))
        if accept.as_kind == "Table":
            body = encode(self._table([obj], kind, request))
        elif accept.as_kind:
            body = encode(partial_metadata(obj))
        else:
            body = (None if options.dry_run else self._stored(kind, obj)) or encode(obj)
        return Response(status=status, body=body, headers=warning_headers(options.warnings))

    def _stored(self, kind: KindInfo, obj: Object) -> bytes | None:
        """The bytes that were stored of what was just written; None where it is shown otherwise or is old by now."""
        meta = obj["metadata"]
        if kind.conversion is not None:
            return None
        record = self.store.get(address_of(kind, meta.get("namespace", ""), meta["name"]))
        return record.value if record is not None and str(record.rev) == meta["resourceVersion"] else None

    # Everything that is not an object ------------------------------------------------------------------------------

    async def _non_resource(self, request: Request, info: RequestInfo) -> Response:
        if not info.routable:
            raise no_route()
        if info.verb != "get":
            raise errors.MethodNotAllowed(f"{request.method} is not supported on {info.path}")
        if info.path in ("/healthz", "/readyz", "/livez"):
            return Response(body=b"ok", content_type="text/plain")
        path = info.path.rstrip("/") or "/"
        if path == "/version":
            return Response(body=encode(version()))
        if path in self.extensions.paths:
            return await self.extensions.paths[path](request)
        if path.startswith("/openapi/v3"):
            return Response(body=self._openapi.body(path))
        found = self._discovery.find(path, request.header("accept"))
        if found is None:
            raise no_route()
        # kubectl keeps discovery on disk and asks only whether it changed. What it keeps takes over the headers of a
        # 304, so the content type must say there, too, which form this is.
        headers = {"ETag": found.etag, "Vary": "Accept", "Cache-Control": "public"}
        if request.header("if-none-match") == found.etag:
            return Response(status=304, content_type=found.content_type, headers=headers)
        return Response(body=found.body, content_type=found.content_type, headers=headers)


def _shown(kind: KindInfo, record: Record) -> Object:
    return kind.shown(record.object, record.rev)
