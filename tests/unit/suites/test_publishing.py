"""Whether a model is published, what goes into its version, and the programs at the end of a workflow."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.serving.errors import ModelError
from paddlecloud.suites import asking, comparing, publishing
from paddlecloud.suites.publishing import Metric
from unit.serving.models import linear


@pytest.mark.parametrize(
    ("value", "less", "metrics", "published"),
    [
        (0.9, False, {"top1": 0.8}, True),
        (0.8, False, {"top1": 0.8}, True),
        (0.7, False, {"top1": 0.8}, False),
        (0.7, True, {"top1": 0.8}, True),
        (0.9, True, {"top1": 0.8}, False),
        (0.1, False, {"other": 0.8}, True),
        (0.1, False, None, True),
    ],
)
def test_a_model_that_is_worse_is_not_published(value: float, less: bool, metrics: Any, published: bool) -> None:
    current = {"model": "clas", "version": "3", "metrics": metrics}
    kept = publishing.verdict(Metric("top1", value, less), current)
    assert bool(kept) is not published
    if kept:
        assert kept == f"top1 is {value}, worse than 0.8 of clas:3, which stays"


def test_a_version_has_the_export_its_settings_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An ONNX model stands for the export here, which cannot be converted once more: it is published as it is."""
    source, settings, labels = linear(tmp_path / "export"), tmp_path / "config.yml", tmp_path / "label.txt"
    settings.write_text("processing: {task: clas, size: [4, 4], labels: label.txt}\n")
    labels.write_text("0 a\n")
    made = publishing.prepare(source, settings, [labels], tmp_path / "model")
    assert sorted(path.name for path in made.iterdir()) == ["label.txt", "model.onnx", "serving.yaml"]
    assert (
        "not converted to ONNX, the Paddle model is published alone: model.onnx is ONNX already"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("processing: {task: clas}\n", "processing.size"),
        ("processing: {task: clsa, size: [4, 4]}\n", 'did you mean "clas"'),
    ],
)
def test_settings_that_the_server_would_refuse_are_refused_before_the_push(
    tmp_path: Path, text: str, words: str
) -> None:
    settings = tmp_path / "config.yml"
    settings.write_text(text)
    with pytest.raises(ModelError) as refused:
        publishing.prepare(linear(tmp_path / "export"), settings, [], tmp_path / "model")
    assert words in str(refused.value)


def test_trials_are_listed_from_the_best_one_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert comparing.main(["--metric", "top1", "slow=0.5", "fast=0.75"]) == 0
    assert capsys.readouterr().out == "trial  top1\nfast   0.75\nslow   0.5\nbest: fast\n"
    assert comparing.main(["--metric", "loss", "--less", "slow=0.5", "fast=0.75"]) == 0
    assert capsys.readouterr().out.endswith("best: slow\n")


@pytest.fixture
def service() -> Iterator[tuple[str, list[Any]]]:
    """A service whose route exists from the third request on; its address, and what it was asked."""
    asked: list[Any] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            status = 404 if len(asked) < 3 else 400 if "bad" in self.path else 200
            body = json.dumps({"result": {"label": ["a"]}} if status == 200 else {"err_msg": "no picture"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_a_request_waits_for_the_route_of_the_service(
    service: tuple[str, list[Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PAUSE", 0.0)
    url, asked = service
    (tmp_path / "a.png").write_bytes(b"picture")
    flags = ["--url", url, "--input", "image", "--file", str(tmp_path / "a.png")]
    assert asking.main([*flags, "--model", "clas:3"]) == 0
    assert capsys.readouterr().out == 'answer: {"label": ["a"]}\n'
    assert asked[-1] == ("/clas/prediction", {"feed": [{"image": base64.b64encode(b"picture").decode()}]})
    assert asking.main([*flags, "--model", "bad"]) == 1
    assert "400" in (said := capsys.readouterr().err)
    assert "no picture" in said
