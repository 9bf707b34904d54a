"""How often Python looks for cycles in processes that hold many Kubernetes objects.

Lists and writes make thousands of small dicts that reference counting frees, or that stay. Looking for cycles among
them as often as Python does by default took a third of the processor under load.
"""

from __future__ import annotations

import gc

THRESHOLDS = (20_000, 20, 20)


def collect_seldom() -> None:
    gc.set_threshold(*THRESHOLDS)
