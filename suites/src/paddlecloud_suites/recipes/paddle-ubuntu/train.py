"""Upstream's DeepFM sample finds its program here; this is the click prediction of the Wide & Deep demonstration."""

import runpy

runpy.run_path("/workspace/wide_and_deep.py", run_name="__main__")

# mypy: ignore-errors
