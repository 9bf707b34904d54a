"""`python -m paddlecloud.suites.asking`: one request to a service, as clients of Paddle Serving send it.

It runs in a pod, where the samples are mounted. The last line of the output is `answer: …`. A service that has just
been deployed may need a moment until its route exists, so refusals of the connection and 404 are retried.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FAILED = 1
SECONDS = 60.0
PAUSE = 1.0
MOMENTARY = (404, 429, 502, 503, 504)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="paddlecloud.suites.asking", description=__doc__)
    parser.add_argument("--url", required=True, help="of the service")
    parser.add_argument("--model", required=True, help="its name, or NAME:VERSION")
    parser.add_argument("--input", required=True, help="name of the input, such as image")
    sent = parser.add_mutually_exclusive_group(required=True)
    sent.add_argument("--file", type=Path, help="sent as base64")
    sent.add_argument("--text", help="sent as it is")
    args = parser.parse_args(arguments)
    value = args.text if args.file is None else base64.b64encode(args.file.read_bytes()).decode()
    address = f"{args.url.rstrip('/')}/{args.model.partition(':')[0]}/prediction"
    try:
        answer = ask(address, {"feed": [{args.input: value}]})
    except (OSError, http.client.HTTPException, ValueError) as error:
        print(f"error: {address}: {error}", file=sys.stderr, flush=True)
        return FAILED
    print(f"answer: {json.dumps(answer, ensure_ascii=False)}", flush=True)
    return 0


def ask(address: str, body: Any, *, seconds: float = SECONDS) -> Any:
    """What `result` is in the answer. Raises `OSError` when it does not come in time."""
    deadline = time.monotonic() + seconds
    while True:
        request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the address of one's own service
                return json.load(answer)["result"]
        except urllib.error.HTTPError as error:
            if error.code not in MOMENTARY or time.monotonic() > deadline:
                raise OSError(f"{error.code}: {error.read(500).decode(errors='replace')}") from error
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


if __name__ == "__main__":
    sys.exit(main())
