"""PaddleJob: distributed training as a gang of pods.

`decide` is the judgement, a pure function; `PaddleJobController` feeds it from caches and carries its plans out.
"""

from paddlecloud.controllers.paddlejob.controller import PaddleJobController
from paddlecloud.controllers.paddlejob.decision.case import JobOptions
from paddlecloud.controllers.paddlejob.decision.decide import decide
from paddlecloud.controllers.paddlejob.observe import Observed, view
from paddlecloud.controllers.paddlejob.reports.listener import ListenAddress

__all__ = ["JobOptions", "ListenAddress", "Observed", "PaddleJobController", "decide", "view"]
