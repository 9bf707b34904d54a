"""PaddleJob: distributed training as a gang of pods.

`decide` is the judgement, a pure function; `PaddleJobController` feeds it from caches and carries its plans out.
"""

from paddlecloud.controllers.paddlejob.case import Options
from paddlecloud.controllers.paddlejob.channel import Place
from paddlecloud.controllers.paddlejob.controller import PaddleJobController
from paddlecloud.controllers.paddlejob.decide import decide
from paddlecloud.controllers.paddlejob.observe import Observed, view

__all__ = ["Observed", "Options", "PaddleJobController", "Place", "decide", "view"]
