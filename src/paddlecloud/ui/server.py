"""The server: routes, who may use them, and what is sent back.

It answers under one name only, which begins with a random label: browsers send a cookie to every port of a name, so a
program on another port of this machine would get it under a name that it can guess. What changes something is a POST of
a form with the secret of its session.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

from aiohttp import web

from paddlecloud.kube import descriptors
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.errors import ApiError, Unauthorized
from paddlecloud.kube.resource import EVENTS, PADDLEJOBS, PODS
from paddlecloud.kube.server.listening import KEEP_ALIVE, Site
from paddlecloud.kube.server.request_limits import CallerLimitReached, CallerLimits
from paddlecloud.ui import forms, live, logs, templates
from paddlecloud.ui.action_pages import ActionPages
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.cross_site import hop, is_of_another_site, local
from paddlecloud.ui.curve_reader import CurveReader
from paddlecloud.ui.exposure import ON_ONE_MACHINE, Exposure
from paddlecloud.ui.feed import Feed
from paddlecloud.ui.frame import LANGUAGE, THEME, THEMES, Frame, language_of, theme_of
from paddlecloud.ui.job_rows import row_of
from paddlecloud.ui.pages import PAGES
from paddlecloud.ui.pages.compare import wanted
from paddlecloud.ui.reader import Reader
from paddlecloud.ui.responses import HEADERS, Refused, is_expected, problem, rendered, see_other
from paddlecloud.ui.sessions import CODE_SECONDS, Identity, Sessions, ViewerSession
from paddlecloud.ui.trusted_proxy import TrustedProxies
from paddlecloud.ui.verdicts import Examiner
from paddlecloud.ui.words import LANGUAGES

log = logging.getLogger(__name__)

COOKIE = "pdc-session"
MOST_STREAMS = 64
"""Of one tenant at the same time, in all of its sessions."""
PAGES_AT_ONCE = 4
"""Of one tenant that are drawn at the same time, and as many live ones; its others wait."""
_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ByToken = Callable[[str], Awaitable[Identity]]


class DashboardServer:
    """`hosts` are the names that it answers to, as the header Host has them; `by_token` makes an identity of a token,
    and raises `Unauthorized` for one that the API server does not accept."""

    def __init__(
        self,
        feed: Feed,
        by_token: ByToken,
        *,
        hosts: Callable[[], set[str]],
        clock: Clock | None = None,
        exposure: Exposure = ON_ONE_MACHINE,
    ) -> None:
        self.feed = feed
        self._by_token, self._hosts = by_token, hosts
        self._https, self._proxies = exposure.https, TrustedProxies(exposure.proxies)
        self._clock = clock or SystemClock()
        self.sessions = Sessions(self._clock)
        self._examiners: WeakKeyDictionary[ViewerSession, Examiner] = WeakKeyDictionary()
        self._curves: WeakKeyDictionary[ViewerSession, CurveReader] = WeakKeyDictionary()
        self._bodies = forms.Bodies()
        self._actions = ActionPages(self)
        self._pages, self._live_pages = CallerLimits(PAGES_AT_ONCE), CallerLimits(PAGES_AT_ONCE)
        self.streams: Counter[str] = Counter()
        """Open streams of events of each tenant."""
        self._runner: web.AppRunner | None = None
        self._warming: asyncio.Task[None] | None = None

    async def start(self, listening: socket.socket) -> None:
        app = web.Application(client_max_size=forms.MOST_BYTES, middlewares=[self._guard])
        app.add_routes([
            web.get("/-/healthz", self._healthz),
            web.get("/-/static/{file:[a-z0-9.-]+}", self._static),
            web.post("/-/codes", self._code),
            web.get("/-/sign-in", self._sign_in_form),
            web.post("/-/sign-in", self._sign_in),
            web.post("/-/sign-out", self._sign_out),
            web.post("/-/preferences", self._preferences),
            web.post("/-/curves", self._read_curves),
            web.get("/-/live", self._live),
            web.get("/-/logs", self._logs),
            web.get("/{section}/{namespace}/{name}/do/{action}", self._actions.ask),
            web.post("/{section}/{namespace}/{name}/do/{action}", self._actions.act),
            web.get("/{path:.*}", self._page),
        ])  # fmt: skip
        templates.compile_all()
        self._warming = asyncio.create_task(self._warm(), name="first lists")
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=KEEP_ALIVE, auto_decompress=False
        )
        await self._runner.setup()
        await Site(self._runner, "", 0, listening=listening, most=descriptors.share(one_of=2)).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)
        await self.feed.close()

    async def _warm(self) -> None:
        """What nearly every page reads, before somebody waits for it."""
        for resource in (PADDLEJOBS, PODS, EVENTS):
            try:
                found = await self.feed.collection(resource)
            except ApiError:
                continue  # the page that reads it says why
            if resource is PADDLEJOBS:
                found.rows(row_of)
                found.history()

    # Every request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The name, the headers, and pages for what is refused."""
        try:
            if request.path != "/-/healthz" and request.headers.get("Host", "") not in self._hosts():
                raise Refused(421, "sign-in.host")
            if request.method == "POST" and is_of_another_site(request):
                raise Refused(403, "problem.form")
            await self._take_handed_on(request)
            answer = await handler(request)
        except web.HTTPException:
            raise
        except Exception as error:
            answer = self._problem(request, error)
        if not answer.prepared:
            for name, value in HEADERS.items():
                answer.headers.setdefault(name, value)
        return answer

    def _problem(self, request: web.Request, error: Exception) -> web.Response:
        session = self._found(request)
        if isinstance(error, Unauthorized) and session is not None:
            self.sessions.close(self._key(request))
            error, session = Refused(401, "sign-in.expired"), None
        if not is_expected(error):
            log.error("%s %s failed", request.method, request.path, exc_info=error)
        return problem(self.frame(request, session), error)

    async def _take_handed_on(self, request: web.Request) -> None:
        """A token that a trusted proxy hands on opens the session of its requests."""
        token = self._proxies.token_of(request)
        if token and self._found(request) is None and request.path not in ("/-/healthz", "/-/codes"):
            try:
                self.sessions.open(await self._by_token(token), self._key(request))
            except ApiError as error:
                raise Refused(401, "sign-in.refused", detail=error.message) from error

    def _key(self, request: web.Request) -> str:
        """By which its session is found; cookies beside a token that was handed on mean nothing."""
        token = self._proxies.token_of(request)
        return f"token {token}" if token else request.cookies.get(COOKIE, "")

    def _found(self, request: web.Request) -> ViewerSession | None:
        return self.sessions.find(self._key(request))

    def session(self, request: web.Request) -> ViewerSession:
        found = self._found(request)
        if found is None:
            raise Refused(401, "sign-in.how")
        return found

    def frame(self, request: web.Request, session: ViewerSession | None, current: str | None = None) -> Frame:
        """`current` is the section of the navigation that the page belongs to."""
        return Frame(
            language_of(request),
            theme_of(request),
            request.path_qs,
            session,
            PAGES,
            current,
            request.query.get("namespace", ""),
        )

    async def form(self, request: web.Request) -> tuple[ViewerSession, Mapping[str, str]]:
        """Of a signed-in viewer, from a page of this session."""
        session = self.session(request)
        form = await self._fields(request)
        if not session.knows(form.get("secret", "")):
            raise Refused(403, "problem.form")
        return session, form

    async def _fields(self, request: web.Request) -> dict[str, str]:
        try:
            return forms.fields_of(await self._bodies.read(request))
        except forms.BadForm as error:
            raise Refused(400, "problem.form", detail=str(error)) from error

    # Pages

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if "code" in request.query:
            return self._redeem(request)
        if self._found(request) is None and request.headers.get("Sec-Fetch-Site") == "cross-site":
            return hop(request.path_qs)
        session = self.session(request)
        page, params = page_of(request.path)
        asked = self._asked(session, params, request.query, language_of(request), quick="full" not in request.query)
        frame = self.frame(request, session, page.home)
        async with _turn(self._pages, session):
            value = await page.load(asked)
            return rendered(page.template, frame, {"page": value, "problems": asked.reader.problems})

    def _asked(
        self, session: ViewerSession, params: Mapping[str, str], query: Mapping[str, str], language: str, *, quick: bool
    ) -> Asked:
        examiner = self._examiners.get(session)
        if examiner is None:
            examiner = self._examiners[session] = Examiner(session.identity, self._clock)
        reader = Reader(self.feed, session.rights)
        return Asked(reader, examiner, self._curves_of(session), params, query, language, self._clock.now(), quick)

    def _curves_of(self, session: ViewerSession) -> CurveReader:
        found = self._curves.get(session)
        if found is None:
            found = self._curves[session] = CurveReader(session.identity, self.feed, self._clock)
        return found

    async def _read_curves(self, request: web.Request) -> web.StreamResponse:
        """Of jobs that have ended, which takes a pod for each."""
        session, form = await self.form(request)
        reader = Reader(self.feed, session.rights)
        for namespace, name in wanted({"objects": form.get("objects", "")}):
            job = await reader.get(PADDLEJOBS, namespace, name)
            if job is not None:
                self._curves_of(session).read(job)
        return see_other(local(form.get("back", "/")))

    async def _live(self, request: web.Request) -> web.StreamResponse:
        """The parts of the page at `path` that change."""
        session = self.session(request)
        path, _, after = request.query.get("path", "").partition("?")
        page, params = page_of(path)
        query = dict(parse_qsl(after))
        language, frame = language_of(request), self.frame(request, session, page.home)
        frame = frame._replace(address=local(request.query.get("path", "")))

        async def draw() -> live.Drawn:
            if self._found(request) is not session:
                raise Refused(401, "sign-in.expired")
            asked = self._asked(session, params, query, language, quick=False)
            async with _turn(self._live_pages, session):
                values = {**frame.values(), "page": await page.load(asked), "problems": asked.reader.problems}
                parts = templates.live_parts(page.template, language, values)
            return live.Drawn(parts, frozenset(asked.reader.reads))

        async def events() -> live.Events:
            async for changed in live.parts(self.feed, draw):
                yield live.event("parts", changed)

        return await self._stream(request, session, events())

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        session = self.session(request)
        wanted = logs.Wanted.of(request.query)
        return await self._stream(request, session, logs.events(session.identity.client, wanted))

    async def _stream(self, request: web.Request, session: ViewerSession, events: live.Events) -> web.StreamResponse:
        """Server-sent events until the viewer goes; what fails is the last event."""
        tenant = session.identity.tenant
        if self.streams[tenant] >= MOST_STREAMS:
            raise Refused(429, "problem.streams")
        self.streams[tenant] += 1
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        try:
            await answer.prepare(request)
            await self._send_until_failure(request, session, answer, events)
        except ConnectionError:
            pass  # the viewer has gone
        finally:
            self.streams -= Counter((tenant,))  # without those that have none
            await events.aclose()
        return answer

    async def _send_until_failure(
        self, request: web.Request, session: ViewerSession, answer: web.StreamResponse, events: live.Events
    ) -> None:
        try:
            await live.send(request, answer, events, session.ended)
            if session.ended.is_set():
                raise Refused(401, "sign-in.expired")
        except ConnectionError:
            raise
        except Exception as error:
            if not is_expected(error):
                log.error("%s failed", request.path, exc_info=error)
            page = problem(self.frame(request, session), error)
            await answer.write(live.event("failed", {"status": page.status}))

    # Signing in and out

    def _redeem(self, request: web.Request) -> web.Response:
        """A code becomes a cookie and leaves the address; prefetching by other programs would use it up. Whom a page of
        another site has led here is asked first: it may be the code of somebody else."""
        code = request.query["code"]
        if is_of_another_site(request) and (whose := self.sessions.holder(code)) is not None:
            values = {"user": whose.user, "fields": list(request.query.items())}
            return rendered("confirm_sign_in.html", self.frame(request, None), values)
        cookie = self.sessions.redeem(code)
        if cookie is None and self._found(request) is None:
            raise Refused(401, "sign-in.used")
        rest = [(key, value) for key, value in request.query.items() if key != "code"]
        answer = hop(str(request.rel_url.with_query(rest)))
        if cookie is not None:
            _set_session(answer, cookie, https=self._https)
        return answer

    async def _code(self, request: web.Request) -> web.Response:
        """For `pdc dashboard`, which has a token: a code for the browser."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused(401, "sign-in.how")
        code = self.sessions.new_code(await self._by_token(token.strip()))
        return web.json_response({"code": code, "seconds": CODE_SECONDS})

    async def _sign_in_form(self, request: web.Request) -> web.StreamResponse:
        raise Refused(401, "sign-in.how")

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        form = await self._fields(request)
        try:
            identity = await self._by_token(form.get("token", "").strip())
        except ApiError as error:
            raise Refused(401, "sign-in.refused", detail=error.message) from error
        answer = see_other(local(form.get("back", "/")))
        _set_session(answer, self.sessions.open(identity), https=self._https)
        return answer

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        await self.form(request)
        self.sessions.close(self._key(request))
        answer = see_other("/")
        answer.del_cookie(COOKIE)
        return answer

    async def _preferences(self, request: web.Request) -> web.StreamResponse:
        form = await self._fields(request)
        answer = see_other(local(form.get("back", "/")))
        for cookie, field, allowed in ((LANGUAGE, "language", LANGUAGES), (THEME, "theme", THEMES)):
            if form.get(field) in allowed:
                answer.set_cookie(cookie, form[field], max_age=365 * 86400, samesite="Strict")
        return answer

    async def _static(self, request: web.Request) -> web.StreamResponse:
        path = _STATIC / request.match_info["file"]
        if path.suffix not in _TYPES or not path.is_file():
            raise Refused(404, "problem.no-page")
        answer = web.Response(body=path.read_bytes(), content_type=_TYPES[path.suffix], charset="utf-8")
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")


@asynccontextmanager
async def _turn(limits: CallerLimits, session: ViewerSession) -> AsyncIterator[None]:
    try:
        async with limits.slot(session.identity.tenant):
            yield
    except CallerLimitReached as error:
        raise Refused(429, "problem.streams") from error


def page_of(path: str) -> tuple[DashboardPage, dict[str, str]]:
    for page in PAGES:
        if (params := page.match(path)) is not None:
            return page, params
    raise Refused(404, "problem.no-page")


def _set_session(answer: web.Response, cookie: str, *, https: bool) -> None:
    answer.set_cookie(COOKIE, cookie, httponly=True, samesite="Strict", path="/", secure=https)
