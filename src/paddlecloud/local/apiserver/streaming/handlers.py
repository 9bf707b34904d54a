"""The streaming subresources of pods as handlers of the API server.

Everything that can be refused is refused before the connection is upgraded, as a Status like any other: clients show
it, and those that tried a WebSocket fall back to SPDY on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Literal, Protocol

from aiohttp import web

from paddlecloud.kube import descriptors, errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.auth.authentication import Headers
from paddlecloud.local.apiserver.http.reply import Written
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response, Upgrade
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.apiserver.streaming import channels, port_forward
from paddlecloud.local.apiserver.streaming.links import WebSocketLink, take_over, websocket
from paddlecloud.local.apiserver.streaming.logs import BASE64_LOG, LOG_PROTOCOLS, begun, log_options, send_all
from paddlecloud.local.apiserver.streaming.port_forward import Dial
from paddlecloud.local.apiserver.streaming.remote_command import Session, converse
from paddlecloud.local.apiserver.streaming.spdy_streams import SpdyStreams
from paddlecloud.local.proxy.connections import Connections
from paddlecloud.local.proxy.relay import hang_up

SPDY = "SPDY/3.1"
MOST_SESSIONS = 256
"""Of exec, attach and port-forward at the same time; in one namespace half of them. Each may hold some megabytes that
its client sent and nobody reads, and half a dozen descriptors."""
NEGOTIATED, WEBSOCKET_PROTOCOLS = "X-Stream-Protocol-Version", "Sec-WebSocket-Protocol"


class PodStreams(Protocol):
    """What the kubelet offers. Refusals are raised as errors of the API."""

    def read_log(
        self,
        namespace: str,
        name: str,
        container: str | None = None,
        *,
        follow: bool = False,
        tail: int | None = None,
        since_seconds: float | None = None,
        since_time: str | None = None,
        timestamps: bool = False,
        previous: bool = False,
        limit_bytes: int | None = None,
        stream: str = "All",
    ) -> AsyncIterator[bytes]: ...

    async def exec(
        self,
        namespace: str,
        name: str,
        container: str | None = None,
        command: Sequence[str] = (),
        *,
        stdin: bool = False,
        tty: bool = False,
    ) -> Session: ...

    async def attach(
        self,
        namespace: str,
        name: str,
        container: str | None = None,
        *,
        stdin: bool = False,
        outputs: Sequence[Literal["stdout", "stderr"]] = ("stdout", "stderr"),
    ) -> Session: ...

    async def port_forward(
        self, namespace: str, name: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]: ...

    def address(self, namespace: str, name: str, port: int) -> tuple[str, int]: ...


def handlers(verbs: Verbs, streams: PodStreams) -> dict[tuple[str, str, str], Handler]:
    """By (group, resource, subresource), as `Extensions` wants them."""
    served = _Streaming(verbs, streams)
    return {
        ("", "pods", "log"): served.log,
        ("", "pods", "exec"): served.exec,
        ("", "pods", "attach"): served.attach,
        ("", "pods", "portforward"): served.port_forward,
    }


class _Streaming:
    def __init__(self, verbs: Verbs, streams: PodStreams) -> None:
        self._verbs = verbs
        self._streams = streams
        self._sessions = Connections(min(MOST_SESSIONS, descriptors.share(one_of=32)))
        self._dialled = Connections(descriptors.share(one_of=16))

    def _begin(self, info: RequestInfo, held: ExitStack) -> None:
        """One more session in the namespace, until `held` is closed."""
        if info.verb not in ("get", "create"):
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on pods/{info.subresource}")
        if not held.enter_context(self._sessions.place(info.namespace)):
            raise errors.TooManyRequests(
                f"too many sessions in pods of namespace {info.namespace} at once: end an exec, attach or port-forward",
                retry_after=1,
            )

    def _pod(self, info: RequestInfo, kind: KindInfo) -> Object:
        pod = self._verbs.get(kind, info.namespace, info.name).object
        if not pod["spec"].get("nodeName"):
            raise errors.BadRequest(f"pod {info.name} does not have a host assigned")
        return pod

    def _living_pod(self, info: RequestInfo, kind: KindInfo, what: str) -> None:
        phase = (self._pod(info, kind).get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            raise errors.BadRequest(f"cannot {what} a container in a completed pod; current phase is {phase}")

    # Logs

    async def log(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "get":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on pods/log")
        self._pod(info, kind)
        options = log_options(request, info.name)
        chunks = self._streams.read_log(info.namespace, info.name, request.query.get("container") or None, **options)
        if not _wants(request, "websocket"):
            return Response(stream=await begun(chunks), content_type="text/plain")
        chosen = _choose(_offered(request.headers, WEBSOCKET_PROTOCOLS) or [""], LOG_PROTOCOLS)
        stream = await begun(chunks)

        async def over_websocket(incoming: web.BaseRequest) -> web.StreamResponse:
            try:
                socket = await websocket(incoming, chosen)
                await send_all(socket, stream, as_text=chosen == BASE64_LOG)
                return socket
            finally:
                await stream.aclose()

        return Response(status=101, upgrade=over_websocket)

    # Programs

    async def exec(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        with ExitStack() as held:
            self._begin(info, held)
            self._living_pod(info, kind, "exec into")
            talk = _Conversation(request)
            container = request.query.get("container") or None
            command = request.query_list.get("command", [])
            session = await self._streams.exec(
                info.namespace, info.name, container, command, stdin=talk.stdin, tty=talk.tty
            )
            return talk.answer(session, held.pop_all())

    async def attach(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        with ExitStack() as held:
            self._begin(info, held)
            self._living_pod(info, kind, "attach to")
            talk = _Conversation(request)
            container = request.query.get("container") or None
            outputs: list[Literal["stdout", "stderr"]] = ["stdout"] if request.flag("stdout") else []
            outputs += ["stderr"] if request.flag("stderr") else []
            session = await self._streams.attach(
                info.namespace, info.name, container, stdin=talk.stdin, outputs=outputs
            )
            return talk.answer(session, held.pop_all())

    # Ports

    async def port_forward(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        with ExitStack() as held:
            self._begin(info, held)
            pod = self._pod(info, kind)
            if pod.get("status", {}).get("phase") != "Running":
                phase = pod.get("status", {}).get("phase", "Pending")
                raise errors.BadRequest(f"unable to forward port because pod is not running. Current status={phase}")
            _need_upgrade(request)
            forward = (self._over_spdy if _wants(request, SPDY) else self._over_websocket)(request, self._dial(info))
            stays = held.pop_all()

        async def upgrade(incoming: web.BaseRequest) -> web.StreamResponse:
            with stays:
                return await forward(incoming)  # type: ignore[no-any-return]

        return Response(status=101, upgrade=upgrade)

    def _dial(self, info: RequestInfo) -> Dial:
        """Connections to pods have places as well: one session may ask for hundreds."""

        @asynccontextmanager
        async def dial(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
            with self._dialled.place(info.namespace) as free:
                if not free:
                    raise errors.TooManyRequests(f"too many connections to pods of namespace {info.namespace} at once")
                reader, writer = await self._streams.port_forward(info.namespace, info.name, port)
                try:
                    yield reader, writer
                finally:
                    await hang_up(writer)

        return dial

    def _over_spdy(self, request: Request, dial: Dial) -> Upgrade:
        _choose(_offered(request.headers, NEGOTIATED), (port_forward.SPDY_PROTOCOL,))

        async def forward(incoming: web.BaseRequest) -> web.StreamResponse:
            link = await take_over(incoming, protocol=SPDY, headers={NEGOTIATED: port_forward.SPDY_PROTOCOL})
            await port_forward.Forwarder(link, dial).run()
            return Written(keep_alive=False)

        return forward

    def _over_websocket(self, request: Request, dial: Dial) -> Upgrade:
        offered = _offered(request.headers, WEBSOCKET_PROTOCOLS)
        chosen = _choose(offered, (port_forward.TUNNEL_PROTOCOL, *port_forward.CHANNEL_PROTOCOLS))
        ports = [port_forward.port_number(p) for text in request.query_list.get("ports", []) for p in text.split(",")]
        if chosen != port_forward.TUNNEL_PROTOCOL and not 0 < len(ports) <= port_forward.MOST_CHANNELS:
            raise errors.BadRequest(
                f"1 to {port_forward.MOST_CHANNELS} ports must be named in the query (ports=8080), not {len(ports)}"
            )

        async def forward(incoming: web.BaseRequest) -> web.StreamResponse:
            socket = await websocket(incoming, chosen)
            if chosen == port_forward.TUNNEL_PROTOCOL:
                await port_forward.Forwarder(WebSocketLink(socket), dial).run()
            else:
                await port_forward.forward_channels(socket, ports, dial)
            await socket.close()
            return socket

        return forward


# --- upgrades ---


class _Conversation:
    """How the client wants to talk to a program, agreed on before there is one."""

    def __init__(self, request: Request) -> None:
        self.stdin, self.tty = request.flag("stdin"), request.flag("tty")
        self._outputs = [name for name in ("stdout", "stderr") if request.flag(name)]
        if not self.stdin and not self._outputs:
            raise errors.BadRequest("you must specify at least 1 of stdin, stdout, stderr")
        if self.tty and "stderr" in self._outputs:
            self._outputs.remove("stderr")  # a terminal shows both in one
        _need_upgrade(request)
        self._over_spdy = _wants(request, SPDY)
        if self._over_spdy:
            self._protocol = _choose(_offered(request.headers, NEGOTIATED), (channels.V4,))
        else:
            offered = _offered(request.headers, WEBSOCKET_PROTOCOLS) or [channels.V1]
            self._protocol = _choose(offered, channels.PROTOCOLS)

    def answer(self, session: Session, held: ExitStack) -> Response:
        """`held` is closed with the session."""

        async def upgrade(incoming: web.BaseRequest) -> web.StreamResponse:
            with held:
                try:
                    return await (self._spdy if self._over_spdy else self._websocket)(incoming, session)
                finally:
                    await session.close()

        return Response(status=101, upgrade=upgrade)

    async def _spdy(self, incoming: web.BaseRequest, session: Session) -> web.StreamResponse:
        optional = (("stdin", self.stdin), ("resize", self.tty))
        wanted = ["error", *self._outputs, *(name for name, asked in optional if asked)]
        link = await take_over(incoming, protocol=SPDY, headers={NEGOTIATED: self._protocol})
        remote = SpdyStreams(link, wanted)
        try:
            if await remote.opened():
                await converse(session, remote, stdin=self.stdin, tty=self.tty)
        finally:
            await remote.close()
        return Written(keep_alive=False)

    async def _websocket(self, incoming: web.BaseRequest, session: Session) -> web.StreamResponse:
        socket = await websocket(incoming, self._protocol, answer_pings=False)
        first = channels.STDOUT if self._outputs else channels.ERROR
        remote = channels.Channels(socket, protocol=self._protocol, first=first)
        await converse(session, remote, stdin=self.stdin, tty=self.tty)
        await socket.close()
        return socket


def _need_upgrade(request: Request) -> None:
    if not (_wants(request, SPDY) or _wants(request, "websocket")):
        raise errors.BadRequest("Upgrade request required")


def _wants(request: Request, protocol: str) -> bool:
    return request.header("upgrade").lower() == protocol.lower()


def _offered(headers: Headers, name: str) -> list[str]:
    """All values of a header, whether repeated or listed."""
    lowered = name.lower()
    return [part.strip() for key, value in headers.items() if key.lower() == lowered for part in value.split(",")]


def _choose(offered: Sequence[str], supported: Sequence[str]) -> str:
    for protocol in supported:
        if protocol in offered:
            return protocol
    raise errors.Forbidden(
        f"unable to negotiate protocol: the client offers {list(offered)}, served are {list(supported)}"
    )
