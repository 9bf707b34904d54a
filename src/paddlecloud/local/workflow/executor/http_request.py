"""`http` templates: one request, made by the pod of the step with what network it has, never by the control plane.

As Argo's agent (workflow/executor/agent.go): the body of the answer is the result; without a `successCondition` every
2xx is a success.
"""

from __future__ import annotations

import base64
import os
import signal
import ssl
import urllib.error
import urllib.request
from typing import Any

from paddlecloud.local.workflow.executor import saving
from paddlecloud.local.workflow.executor.orders import MOST_MESSAGE, MOST_VALUE, ExecutorError
from paddlecloud.local.workflow.executor.sources import Redirects
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError

TIMEOUT = 30
"""Seconds without `timeoutSeconds`, as Argo documents it."""


def carry_out(order: dict[str, Any]) -> int:
    """The exit code; the report says what was answered and why it is no success."""
    url = str(order["url"])
    if not url.startswith(("http://", "https://")):
        raise ExecutorError(f"{url[:200]} is no http or https address")
    lasts = int(order.get("timeoutSeconds") or TIMEOUT)
    signal.signal(signal.SIGALRM, lambda *_: _too_late(url, lasts))
    signal.alarm(lasts)
    try:
        code, headers, body = _answer(order, url, lasts)
    finally:
        signal.alarm(0)
    print(body, flush=True)
    problem = _problem(order, code, headers, body)
    if not problem:
        saving.write({"result": body})
        return 0
    report = {"result": body, "error": problem}
    saving.write(report if len(body) < MOST_MESSAGE // 4 else {"error": problem})
    return 1


def _too_late(url: str, lasts: int) -> None:
    raise ExecutorError(f"{url[:200]}: no answer within {lasts} s")


def _answer(order: dict[str, Any], url: str, lasts: int) -> tuple[int, dict[str, list[str]], str]:
    body = base64.b64decode(order["bytes"]) if "bytes" in order else str(order.get("body") or "").encode()
    method = str(order.get("method") or "GET").upper()
    request = urllib.request.Request(url, data=body or None, method=method)  # noqa: S310 - checked by the caller
    request.add_header("User-Agent", "paddlecloud")
    for header in order.get("headers") or ():
        value = os.environ.get(header["variable"], "") if "variable" in header else str(header.get("value") or "")
        request.add_header(str(header["name"]), value)
    context = ssl.create_default_context()
    if order.get("insecureSkipVerify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(Redirects, urllib.request.HTTPSHandler(context=context))
    try:
        with _opened(opener, request, lasts) as found:
            text = found.read(MOST_VALUE + 1)
            code, headers = int(found.status), found.headers
    except urllib.error.URLError as why:
        raise ExecutorError(f"{url[:200]}: {why.reason}; check the address and the network") from None
    except (OSError, ValueError) as why:
        raise ExecutorError(f"{url[:200]}: {why}") from None
    if len(text) > MOST_VALUE:
        raise ExecutorError(f"{url[:200]}: the answer is larger than {MOST_VALUE:,} bytes")
    by_name: dict[str, list[str]] = {}
    for name, value in headers.items():
        by_name.setdefault("-".join(part.capitalize() for part in name.split("-")), []).append(value)
    return code, by_name, text.decode(errors="replace")


def _opened(opener: urllib.request.OpenerDirector, request: urllib.request.Request, lasts: int) -> Any:
    try:
        return opener.open(request, timeout=lasts + 1)
    except urllib.error.HTTPError as answer:
        return answer  # it is an answer, whatever its code


def _problem(order: dict[str, Any], code: int, headers: dict[str, list[str]], body: str) -> str:
    condition = str(order.get("successCondition") or "")
    if not condition:
        return "" if 200 <= code < 300 else f"received non-2xx response code: {code}"
    asked = {key: order.get(key) or "" for key in ("method", "url", "body")}
    answered = {"statusCode": code, "body": body, "headers": headers}
    try:
        value = evaluate(condition, {"request": asked, "response": answered})
    except ExpressionError as why:
        raise ExecutorError(f"successCondition {condition[:200]!r}: {why}") from None
    if not isinstance(value, bool):
        raise ExecutorError(f"successCondition {condition[:200]!r} gives no bool")
    return "" if value else f"successCondition '{condition[:200]}' evaluated false"
