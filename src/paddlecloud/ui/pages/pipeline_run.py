"""One run of a pipeline: its steps as a graph, where their time went, what each got and gave, and why it failed."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.pipelines.runs import record
from paddlecloud.pipelines.runs.nodes import nodes_of, with_nodes
from paddlecloud.sdk.members import past_members_of
from paddlecloud.sdk.pipelines import stored_artifacts
from paddlecloud.ui import run_graph, run_rows, step_rows
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import RUN
from paddlecloud.ui.run_graph import RunGraph
from paddlecloud.ui.run_rows import RunRow
from paddlecloud.ui.step_rows import StepRow
from paddlecloud.ui.subject import Subject, subject

MOST_STEPS = 300


class RunView(NamedTuple):
    subject: Subject
    row: RunRow
    graph: RunGraph
    steps: list[StepRow]
    more_steps: int
    hits: int
    """Steps that were answered from the cache, of `keyed` that could have been."""
    keyed: int
    unreadable: str
    """Why its steps cannot be shown."""

    @property
    def phase(self) -> str:
        return self.row.phase


async def load(asked: Asked) -> RunView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    run = found(await asked.reader.get(WORKFLOWS, namespace, name))
    row = run_rows.row_of(run)
    pods = await asked.reader.by_index(PODS, RUN, f"{namespace}/{name}")
    unreadable = ""
    try:
        run = with_nodes(run)
    except Invalid as error:
        run, unreadable = {**run, "status": {"phase": row.phase}}, error.message
    nodes = nodes_of(run)
    steps = record.steps(run, *await _known(asked, run, pods))
    rows = step_rows.rows(steps, nodes, asked.now)
    hits, keyed = step_rows.counts(rows)
    commands = (
        ["pipeline", "show", name, "-w"], ["pipeline", "logs", name, "-f"], ["pipeline", "artifacts", name],
        ["pipeline", "cache", name], ["explain", f"workflow/{name}"],
    )  # fmt: skip
    return RunView(
        subject=await subject(asked, "pipelines", run, pods, commands),
        row=row,
        graph=run_graph.graph(nodes, asked.now),
        steps=rows[:MOST_STEPS],
        more_steps=max(0, len(rows) - MOST_STEPS),
        hits=hits,
        keyed=keyed,
        unreadable=unreadable,
    )


async def _known(asked: Asked, run: Object, pods: list[Object]) -> tuple[list[Object], list[Object]]:
    """Pods and stored artifacts of its steps: also pods that are gone, where the platform keeps what they were."""
    if asked.quick:
        return pods, []
    client = asked.examiner.client
    gone = [one.pod for one in await past_members_of(client, run)]
    return [*gone, *pods], await stored_artifacts(client, run)


PAGE = DashboardPage("pipeline_run", "/pipelines/{namespace}/{name}", load)
