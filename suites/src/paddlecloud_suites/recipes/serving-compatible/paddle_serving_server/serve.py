"""`python3 -m paddle_serving_server.serve --model DIR --port PORT`, as published examples start it."""

import argparse
import sys

from paddlecloud.serving.command import main


def arguments(given):
    parser = argparse.ArgumentParser(prog="paddle_serving_server.serve")
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, default=9292)
    parser.add_argument("--thread", "--threads", type=int, default=1)
    parser.add_argument("--name", default="")
    known, ignored = parser.parse_known_args(given)
    if ignored:
        print(f"ignored, because this server has no such option: {' '.join(ignored)}", file=sys.stderr)
    return known


if __name__ == "__main__":
    asked = arguments(sys.argv[1:])
    name = ["--name", asked.name] if asked.name else []
    model = f"./{asked.model}" if not asked.model.startswith(("/", ".")) else asked.model
    sys.exit(main(["--model", model, "--port", str(asked.port), "--workers", str(asked.thread), *name]))

# mypy: ignore-errors
