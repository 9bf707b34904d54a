"""`kill -9` of the control plane while a workflow runs: no step is lost, and none runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from embedded.test_kubelet_chaos import PlatformUnderKills, platform_under_kills
from harness import eventually
from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.resource import Object

LOOP = 3
CHAIN = 3
"""Pods one after the other in each iteration of the loop: a first attempt that fails, a second one, and a reader."""

# Each pod appends its name to a file before all else. The first attempt of `make` fails by itself; the artifact and the
# parameter of the second one reach `read`, also if the control plane is killed while they are collected.
SPEC = """
entrypoint: main
podGC: {strategy: OnPodCompletion}
volumes: [{name: out, hostPath: {path: OUT}}]
templates:
- name: main
  steps: GROUPS
- name: pair
  inputs: {parameters: [{name: number}]}
  dag:
    tasks:
    - name: make
      template: make
      arguments: {parameters: [{name: number, value: "{{inputs.parameters.number}}"}]}
    - name: read
      template: read
      dependencies: [make]
      arguments:
        parameters: [{name: made, value: "{{tasks.make.outputs.parameters.made}}"}]
        artifacts: [{name: made, from: "{{tasks.make.outputs.artifacts.made}}"}]
- name: make
  inputs: {parameters: [{name: number}]}
  retryStrategy: {limit: 1}
  outputs:
    parameters: [{name: made, valueFrom: {path: /tmp/made}}]
    artifacts: [{name: made, path: /tmp/made}]
  container: &shell
    image: busybox
    command: [sh, -ec]
    volumeMounts: [{name: out, mountPath: /out}]
    args: ['echo {{pod.name}} >> /out/begun; test {{retries}} = 1; echo {{inputs.parameters.number}} > /tmp/made']
- name: read
  inputs: {parameters: [{name: made}], artifacts: [{name: made, path: /tmp/read}]}
  container:
    <<: *shell
    args: ['echo {{pod.name}} >> /out/begun; test "$(cat /tmp/read)" = "{{inputs.parameters.made}}"']
"""


def workflow(out: Path, groups: int) -> Object:
    number = {"name": "number", "value": "{{item}}"}
    step = {"template": "pair", "withItems": list(range(LOOP)), "arguments": {"parameters": [number]}}
    made = [[{"name": f"s{group}", **step}] for group in range(groups)]
    spec = yaml.safe_load(SPEC.replace("OUT", str(out)).replace("GROUPS", str(made)))
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "killed", "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[PlatformUnderKills]:
    async with platform_under_kills(tmp_path, 13) as world:
        yield world


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("rounds", [5, pytest.param(40, marks=pytest.mark.soak)])
async def test_given_a_control_plane_that_is_killed_again_and_again_then_each_step_runs_once(
    world: PlatformUnderKills, rounds: int
) -> None:
    begun = world.out / "begun"
    begun.touch()
    await world.client.create(WORKFLOWS, workflow(world.out, groups=rounds + 1), namespace="default")
    for round in range(rounds):
        reached = round * LOOP * CHAIN + world.rng.randrange(LOOP * CHAIN)
        await eventually(lambda: len(begun.read_text().split()), lambda count, least=reached: count > least)
        await asyncio.sleep(world.rng.uniform(0, 0.3))  # the moment of the kill, not a wait for anything
        await (world.kill_control_plane, world.kill_process_group)[round % 2]()

    async def status() -> Object:
        return dict((await world.client.get(WORKFLOWS, "killed", namespace="default"))["status"])

    ended = await eventually(status, lambda found: found.get("finishedAt"))
    assert ended["phase"] == "Succeeded", ended.get("message")
    assert ended["progress"] == f"{(rounds + 1) * LOOP * 2}/{(rounds + 1) * LOOP * CHAIN}"
    times = Counter(begun.read_text().split())
    assert (set(times.values()), len(times)) == ({1}, (rounds + 1) * LOOP * CHAIN), times.most_common(3)
