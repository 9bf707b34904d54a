"""The event of a push to a suite's branch, signed as GitHub signs it: `python -m … URL SUITE BRANCH`, key in `TOKEN`.

Schedules start builds with it, so the listener accepts signed events alone, from GitHub or from a schedule.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
from urllib.request import Request, urlopen


def event(suite: str, branch: str, key: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers."""
    body = json.dumps({"ref": f"refs/heads/{branch}", "repository": {"name": suite}}).encode()
    signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    return body, {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-Hub-Signature-256": f"sha256={signature}",
    }


def main(url: str, suite: str, branch: str) -> None:
    body, headers = event(suite, branch, os.environ["TOKEN"])
    request = Request(url, body, headers)  # noqa: S310 - the listener's address, from the operator
    with urlopen(request, timeout=30) as answer:  # noqa: S310
        print(answer.read(10_000).decode(errors="replace"))


if __name__ == "__main__":
    main(*sys.argv[1:])
