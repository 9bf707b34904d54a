"""The pages about the inference server name everything it has: paths, settings, options, metrics, refusals."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness import PATIENCE
from paddlecloud.serving import app, command, grpc_service, model_folder, tasks
from paddlecloud.serving.intake import Intake
from paddlecloud.serving.metrics import Metrics
from paddlecloud.serving.model import Resources
from paddlecloud.serving.slot import Slot

from .conftest import Serve
from .models import linear

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [DOCS / "inference-server.md", DOCS / "inference-server.zh.md"]


@pytest.fixture(params=PAGES, ids=lambda path: path.name)
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param.read_text())


async def test_every_path_is_named(page: str, tmp_path: Path) -> None:
    slot = Slot(tmp_path, name="", resources=Resources(), metrics=Metrics())
    routes = app.build(slot, Metrics(), intake=Intake(1)).router.resources()
    paths = {route.canonical.replace("{name}", "NAME").replace("{version}", "VERSION") for route in routes}
    missing = [path for path in paths if path.replace("/v2/models/NAME/versions", "…/versions") not in page]
    assert [path for path in missing if not path.startswith("/v2/models/NAME/versions/VERSION")] == []


REQUEST = re.compile(r"<!-- request: (\S+) -->\n```json\n(.*?)```", re.DOTALL)


async def test_every_request_on_the_page_is_answered(page: str, serve: Serve, tmp_path: Path) -> None:
    client = await serve(linear(tmp_path / "digits"))
    requests = REQUEST.findall(page)
    routes = {"/v2/models/digits/infer", "/digits/prediction", "/GeneralModelService/inference"}
    assert {path for path, _ in requests} == routes, "one at least for every protocol"
    for path, body in requests:
        answer = await client.post(path, data=body)
        assert answer.status == 200, await answer.text()
        assert '"y"' in await answer.text()


async def test_the_grpc_example_of_the_page_runs(page: str, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(import [^`]*tritonclient.*?)```", page, re.DOTALL)
    slot = Slot(linear(tmp_path / "digits"), name="", resources=Resources(), metrics=Metrics())
    await slot.load()
    server = grpc_service.build(slot, Intake(1 << 20))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        reported = program.replace("127.0.0.1:41234", f"127.0.0.1:{port}")
        assert reported != program
        ran = await asyncio.create_subprocess_exec(sys.executable, "-c", reported, stdout=subprocess.PIPE)
        shown, _ = await asyncio.wait_for(ran.communicate(), PATIENCE)
    finally:
        await server.stop(None)
        await slot.close()
    assert (ran.returncode, shown.decode()) == (0, "[[2. 4. 6.]]\n")


def test_the_settings_on_the_page_are_all_there_are_and_are_taken(page: str, tmp_path: Path) -> None:
    texts = re.findall(r"```yaml\n(.*?)```", page, re.S)
    assert {field for text in texts for field in yaml.safe_load(text)} == set(model_folder._FIELDS)
    model = linear(tmp_path / "m")
    for text in texts:
        (model / "serving.yaml").write_text(text)
        assert model_folder.find(model).settings.batch.rows == 32


PARAMETER = re.compile(r"options\.\w+\(\s*\"(\w+)\"")


def test_every_task_and_each_of_its_parameters_is_named(page: str) -> None:
    sources = [path.read_text() for path in Path(tasks.__file__).parent.glob("*.py")]
    parameters = {name for source in sources for name in PARAMETER.findall(source)}
    assert {"threshold", "vocabulary", "bands", "labels"} < parameters
    assert {name for name in (*tasks.NAMES, *parameters) if f"`{name}`" not in page} == set()


def test_every_metric_and_option_is_named(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics()
    metrics.waiting_from(dict)
    named = set(re.findall(r"paddlecloud_serving_\w+", metrics.registry.render()))
    assert {name for name in named if name not in page} == set()
    with pytest.raises(SystemExit):
        command.parse(["--help"])
    options = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert {option for option in options if f"`{option}`" not in page} == set()
