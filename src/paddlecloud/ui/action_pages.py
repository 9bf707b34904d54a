"""The pages of actions: what the viewer chooses, the command that this makes, and what it printed when it has run.

The command that is shown is the one that runs: a form that chooses values is answered by the command of these, and the
form that runs it carries them along.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web

from paddlecloud.kube.resource import Object, Resource
from paddlecloud.kube.server.request_limits import CallerLimitReached, CallerLimits
from paddlecloud.ui import action_table, actions
from paddlecloud.ui.actions import Action, Outcome, Values
from paddlecloud.ui.asked import found, home_of
from paddlecloud.ui.reader import Reader
from paddlecloud.ui.responses import Refused, rendered
from paddlecloud.ui.sessions import ViewerSession

if TYPE_CHECKING:
    from paddlecloud.ui.server import DashboardServer

log = logging.getLogger(__name__)

ACTIONS_AT_ONCE = 2
"""Of one tenant: each is a process. Its others wait."""


class _Wanted(NamedTuple):
    """An action on an object."""

    section: str
    obj: Object
    action: Action


class ActionPages:
    def __init__(self, server: DashboardServer) -> None:
        self._server = server
        self._limits = CallerLimits(ACTIONS_AT_ONCE)

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """The page that shows a command before it runs."""
        session = self._server.session(request)
        wanted = await self._wanted(request, session)
        return self._page(request, session, wanted, wanted.action.values(wanted.obj, request.query), None)

    async def act(self, request: web.Request) -> web.StreamResponse:
        session, form = await self._server.form(request)
        wanted = await self._wanted(request, session)
        values = wanted.action.values(wanted.obj, form)
        if not wanted.action.is_complete(wanted.obj, values):
            return self._page(request, session, wanted, values, None)
        namespace = wanted.obj["metadata"].get("namespace")
        words = wanted.action.words(wanted.obj, values)
        try:
            async with self._limits.slot(session.identity.tenant):
                done = await actions.run(session.identity, words, namespace)
        except CallerLimitReached as error:
            raise Refused(429, "problem.busy") from error
        log.info("%s: %s", session.identity.user, actions.command(words, namespace))
        return self._page(request, session, wanted, values, done)

    def _page(
        self, request: web.Request, session: ViewerSession, wanted: _Wanted, values: Values, done: Outcome | None
    ) -> web.StreamResponse:
        section, obj, action = wanted
        complete = action.is_complete(obj, values)
        shown: dict[str, Any] = {
            "action": action,
            "obj": obj,
            "section": section,
            "home": home_of(section),
            "fields": action.fields(obj),
            "values": values,
            "command": actions.command(action.words(obj, values), obj["metadata"].get("namespace")) if complete else "",
            "change": action.change(obj, values) if complete else "",
            "undo": _undo(wanted, values) if done is not None and done.ok else None,
            "done": done,
        }
        status = 200 if done is None or done.ok else 409
        return rendered("action.html", self._server.frame(request, session, home_of(section)), shown, status)

    async def _wanted(self, request: web.Request, session: ViewerSession) -> _Wanted:
        names = request.match_info
        resource, action = _named(names["section"], names["action"])
        reader = Reader(self._server.feed, session.rights)
        return _Wanted(names["section"], found(await reader.get(resource, names["namespace"], names["name"])), action)


def _named(section: str, name: str) -> tuple[Resource, Action]:
    which = action_table.find(section, name)
    if which is None:
        raise Refused(404, "problem.no-page")
    return which


def _undo(wanted: _Wanted, values: Values) -> dict[str, str] | None:
    """The values of the action that takes it back; None where there is none."""
    back = action_table.find(wanted.section, wanted.action.undo)
    if back is None:
        return None
    names = {one.name for one in back[1].fields(wanted.obj)} - {"reason"}
    return {name: value for name, value in values.items() if name in names}
