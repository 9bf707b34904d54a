"""A folder with the workflow of a task, to be edited: pipeline, configuration, settings of its service, samples."""

from __future__ import annotations

from pathlib import Path

import jinja2

from paddlecloud.suites import samples
from paddlecloud.suites.tasks import TASKS

TEMPLATES = Path(__file__).parent / "templates"
PIPELINE, SWEEP, VOLUME, DATA = "pipeline.py", "sweep.py", "volume.yaml", "data"
RENDERED = (PIPELINE, SWEEP, VOLUME, "README.md", "README.zh.md")
LONGEST_NAME = 30
"""Names of jobs, pods and services are longer."""


def files(task: str, name: str) -> dict[str, str]:
    """Texts by the names of their files."""
    wanted = TASKS[task]
    environment = jinja2.Environment(  # noqa: S701 - these are Python, YAML and Markdown
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[##",
        comment_end_string="##]",
    )
    made = {file: environment.get_template(f"{file}.j2").render(task=wanted, name=name) for file in RENDERED}
    for path in sorted((TEMPLATES / "tasks" / task).iterdir()):
        made[path.name] = path.read_text(encoding="utf-8")
    return made


def write(task: str, name: str, folder: Path, *, count: int = 0) -> tuple[int, int]:
    """Into an empty folder, with generated samples; the numbers of these."""
    for file, text in files(task, name).items():
        (folder / file).write_text(text, encoding="utf-8")
    return samples.generate(TASKS[task].samples, folder / DATA, count=count)
