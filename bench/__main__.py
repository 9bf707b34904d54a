"""`python -m bench [NAME …]`: run all benchmarks, or those named, and print one table."""

from __future__ import annotations

import importlib
import platform
import sys
from pathlib import Path

from .claim import table

SHARED = ("__init__", "__main__", "claim", "scheduling_load")


def main() -> int:
    available = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in SHARED)
    wanted = sys.argv[1:] or available
    unknown = [name for name in wanted if name not in available]
    if unknown:
        print(f"no benchmark called {', '.join(unknown)}; there are: {', '.join(available)}", file=sys.stderr)
        return 2
    claims = []
    for name in wanted:
        print(f"running {name} …", file=sys.stderr, flush=True)
        claims += list(importlib.import_module(f"bench.{name}").run())
    print(f"Python {platform.python_version()}, {platform.system()} {platform.release()}")
    print(table(claims))
    return 1 if any(claim.verdict == "MISS" for claim in claims) else 0


if __name__ == "__main__":
    sys.exit(main())
