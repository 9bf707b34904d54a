"""The HTTP side: which path means what, how refusals look, what is counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web

from paddlecloud import __version__
from paddlecloud.kube.metrics import CONTENT_TYPE
from paddlecloud.serving import paddle_serving, triton, v2
from paddlecloud.serving.errors import ModelError, Overloaded, ServingError
from paddlecloud.serving.intake import Intake
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.slot import Slot
from paddlecloud.serving.tensors import Feeds, as_json

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.Response]]


SERVER_OPTIONS: dict[str, Any] = {"auto_decompress": False}
"""For the server of the application: `Intake` decompresses, beside the event loop and within its limits."""
LONGEST_MESSAGE = 1000
"""Characters of a refusal; it may quote what the client sent."""


def build(slot: Slot, metrics: Metrics, *, intake: Intake) -> web.Application:
    app = web.Application(middlewares=[_refusals(slot, metrics, intake)])
    routes = _Routes(slot, metrics, intake)
    app.add_routes(
        [
            web.get("/v2", routes.server),
            web.get("/v2/health/live", routes.live),
            web.get("/v2/health/ready", routes.ready),
            web.get("/v2/models/stats", routes.statistics),
            web.get("/v2/models/{name}", routes.describe),
            web.get("/v2/models/{name}/config", routes.config),
            web.get("/v2/models/{name}/stats", routes.statistics),
            web.get("/v2/models/{name}/versions/{version}/config", routes.config),
            web.get("/v2/models/{name}/versions/{version}/stats", routes.statistics),
            web.get("/v2/models/{name}/example", routes.example),
            web.get("/v2/models/{name}/ready", routes.model_ready),
            web.get("/v2/models/{name}/versions/{version}", routes.describe),
            web.get("/v2/models/{name}/versions/{version}/ready", routes.model_ready),
            web.post("/v2/models/{name}/infer", routes.infer),
            web.post("/v2/models/{name}/versions/{version}/infer", routes.infer),
            web.get("/v2/repository/index", routes.index),
            web.post("/v2/repository/index", routes.index),
            web.post("/v2/repository/models/{name}/load", routes.load),
            web.post("/GeneralModelService/inference", routes.general),
            web.post("/{name}/prediction", routes.prediction),
            web.get("/metrics", routes.metrics),
            web.get("/healthz", routes.live),
        ]
    )
    return app


class _Routes:
    def __init__(self, slot: Slot, metrics: Metrics, intake: Intake) -> None:
        self._slot = slot
        self._metrics = metrics
        self._intake = intake

    async def server(self, request: web.Request) -> web.Response:
        return _json({"name": "paddlecloud", "version": __version__, "extensions": triton.EXTENSIONS})

    async def live(self, request: web.Request) -> web.Response:
        return _json({"live": True})

    async def ready(self, request: web.Request) -> web.Response:
        return _json({"ready": self._slot.ready}, status=200 if self._slot.ready else 503)

    async def model_ready(self, request: web.Request) -> web.Response:
        model = self._slot.model(**request.match_info)
        return _json({"name": model.name, "ready": True})

    async def describe(self, request: web.Request) -> web.Response:
        return _json(self._slot.model(**request.match_info).describe())

    async def config(self, request: web.Request) -> web.Response:
        return _json(triton.config(self._slot.model(**request.match_info)))

    async def statistics(self, request: web.Request) -> web.Response:
        return _json(triton.statistics(self._slot.model(**request.match_info)))

    async def example(self, request: web.Request) -> web.Response:
        """A request that this model takes, all zeros: to try it with, and to see what one looks like."""
        return _json(v2.example(self._slot.model(**request.match_info)))

    async def infer(self, request: web.Request) -> web.Response:
        intake = self._intake
        with self._slot.using(**request.match_info) as model:
            async with intake.body(request) as raw:
                length = request.headers.get(v2.HEADER_LENGTH)
                asked = await intake.decode(len(raw), v2.read, model, raw, length, intake.largest_json)
                outputs = await model.infer(asked.feeds, fetch=asked.fetch)
                body, header_length = await intake.decode(_size(outputs), v2.write, model, asked, outputs)
        if header_length is None:
            return _body(body)
        headers = {v2.HEADER_LENGTH: str(header_length)}
        return web.Response(body=body, content_type="application/octet-stream", headers=headers)

    async def prediction(self, request: web.Request) -> web.Response:
        intake = self._intake
        with self._slot.using(request.match_info["name"]) as model:
            async with intake.body(request) as raw:
                asked = await intake.decode(len(raw), paddle_serving.read_prediction, model, raw, intake.largest_json)
                write = partial(paddle_serving.write_prediction, asked)
                return _body(await model.predict(asked.entries, fetch=asked.fetch, write=write))

    async def general(self, request: web.Request) -> web.Response:
        intake = self._intake
        with self._slot.using() as model:
            async with intake.body(request) as raw:
                asked = await intake.decode(len(raw), paddle_serving.read_general, model, raw, intake.largest_json)
                outputs = await model.infer(asked.feeds, fetch=asked.fetch)
                return _body(await intake.decode(_size(outputs), paddle_serving.write_general, model, asked, outputs))

    async def index(self, request: web.Request) -> web.Response:
        model = self._slot.model()
        entry = {"name": model.name, "version": model.version, "state": "READY", "reason": self._slot.problem}
        return _json([entry])

    async def load(self, request: web.Request) -> web.Response:
        """Take up a new version now instead of at the next look."""
        self._slot.model(request.match_info["name"])
        model = await self._slot.load()
        return _json({"name": model.name, "version": model.version})

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.registry.render().encode(), headers={"Content-Type": CONTENT_TYPE})


def _refusals(slot: Slot, metrics: Metrics, intake: Intake) -> Any:
    @web.middleware
    async def refuse(request: web.Request, handler: Handler) -> web.Response:
        began = time.monotonic()
        answer = await _answer(request, handler, slot.name)
        if request.method == "POST":
            name = request.match_info.get("name", "") if answer.status != 404 else ""
            metrics.requests.inc(name, str(answer.status))
            metrics.seconds.observe(time.monotonic() - began, name)
        await intake.send(request, answer)
        return answer

    return refuse


async def _answer(request: web.Request, handler: Handler, served: str) -> web.Response:
    try:
        return await handler(request)
    except Overloaded as error:
        return _refusal(request, 429, str(error), {"Retry-After": str(error.retry_after)})
    except ModelError as error:  # a reload that was asked for; the old model goes on
        return _refusal(request, 422, str(error))
    except ServingError as error:
        return _refusal(request, error.status, str(error))
    except web.HTTPException as error:
        if error.status == 404:
            where = f"the model is at /v2/models/{served}/infer, an example of a request at /v2/models/{served}/example"
            return _refusal(request, 404, f"there is nothing at {request.path}; {where}")
        if isinstance(error, web.HTTPMethodNotAllowed):
            takes = " or ".join(sorted(error.allowed_methods - {"HEAD"}))
            return _refusal(request, 405, f"{request.path} takes {takes}, not {request.method}")
        return _refusal(request, error.status, error.reason)
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        return _refusal(request, 500, "the server failed; its log says why")


def _refusal(request: web.Request, status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    message = message[:LONGEST_MESSAGE]
    if request.path.startswith("/v2"):
        return _json({"error": message}, status=status, headers=headers)
    return _json({"error": message, "err_no": status, "err_msg": message}, status=status, headers=headers)


def _size(outputs: Feeds) -> int:
    return sum(int(array.nbytes) for array in outputs.values())


def _json(content: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return _body(as_json(content), status=status, headers=headers)


def _body(content: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=content, status=status, content_type="application/json", headers=headers)
