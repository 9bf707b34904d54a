"""A callback that holds the event loop is named; waiting, load and a stopped process are not blamed on anybody."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from paddlecloud.kube.watchdog import LoopWatchdog

LIMIT = 0.2
LOOK = 0.02


def burn(cpu_seconds: float) -> None:
    until = time.thread_time() + cpu_seconds
    while time.thread_time() < until:
        pass


async def run_as_task(work: object, name: str) -> None:
    async def culprit() -> None:
        work()  # type: ignore[operator]

    with LoopWatchdog(asyncio.get_running_loop(), limit=LIMIT, look_every=LOOK):
        await asyncio.create_task(culprit(), name=name)


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda: burn(10 * LIMIT), id="busy"),
        pytest.param(lambda: time.sleep(10 * LIMIT), id="blocked in a system call"),
    ],
)
async def test_a_task_that_holds_the_loop_is_named_once_with_its_stack(
    work: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await run_as_task(work, "the-culprit")
    (said,) = [record.getMessage() for record in caplog.records]
    assert "has held the event loop" in said
    assert "the-culprit" in said
    assert "in culprit" in said, "the stack shows where"


@pytest.mark.parametrize(
    "look_every",
    [pytest.param(LOOK, id="while a look is due"), pytest.param(20 * LIMIT, id="with an idle loop before and after")],
)
async def test_one_long_call_into_c_is_reported_when_it_ends(
    look_every: float, caplog: pytest.LogCaptureFixture
) -> None:
    def keep_the_interpreters_lock() -> None:
        re.match(r"(a+)+$", "a" * 25 + "b")

    loop = asyncio.get_running_loop()
    with caplog.at_level(logging.WARNING), LoopWatchdog(loop, limit=LIMIT, look_every=look_every):
        loop.call_soon(keep_the_interpreters_lock)
        while not caplog.records:  # the watchdog gets its turn when the call has ended; the test's own limit bounds it
            await asyncio.sleep(LOOK)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("one call into C has held the event loop")


async def test_a_callback_without_a_task_is_named_too(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def hold() -> None:
        burn(10 * LIMIT)
        done.set()

    with caplog.at_level(logging.WARNING), LoopWatchdog(loop, limit=LIMIT, look_every=LOOK):
        loop.call_soon(hold)
        await done.wait()
    assert ["hold" in record.getMessage() for record in caplog.records] == [True]


async def test_much_work_in_short_pieces_is_nobodys_fault(caplog: pytest.LogCaptureFixture) -> None:
    async def short_pieces() -> None:
        for _ in range(100):
            burn(LIMIT / 50)
            await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING), LoopWatchdog(asyncio.get_running_loop(), limit=LIMIT, look_every=LOOK):
        await asyncio.gather(short_pieces(), short_pieces())
    assert not caplog.records


STOPPED_IN_A_CALLBACK = """
import asyncio, logging, sys
from paddlecloud.kube.watchdog import LoopWatchdog
logging.basicConfig(stream=sys.stdout)

def hold():
    print("in the callback", flush=True)
    sys.stdin.readline()

async def main():
    with LoopWatchdog(asyncio.get_running_loop(), limit=0.6, look_every=0.1):
        hold()

asyncio.run(main())
"""


def test_a_process_that_was_stopped_in_a_callback_blames_nobody() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED_IN_A_CALLBACK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "in the callback\n"
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(2)
        process.stdin.write("\n")
        process.stdin.flush()
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdout.read() == ""
