"""Our controllers as a program beside a cluster: `python -m cluster.operators KUBECONFIG`. Runs until it is ended."""

from __future__ import annotations

import asyncio
import logging
import sys

from paddlecloud.controllers.paddlejob import PaddleJobController
from paddlecloud.controllers.paddlejob.controller import served_kinds
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.http import HttpTransport


async def run(kubeconfig: str) -> None:
    client = Client(HttpTransport(config.load(kubeconfig), user_agent="paddlejob-controller"))
    await PaddleJobController(client, served=await served_kinds(client)).run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(run(sys.argv[1]))
