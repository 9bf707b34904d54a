"""PaddleService: a model behind a URL, as one Knative Service, or as Deployments where there is no Knative.

`decide` is the judgement, a pure function; `PaddleServiceController` feeds it from caches and carries its plans out.
"""

from paddlecloud.controllers.paddleservice.controller import PaddleServiceController, served_kinds
from paddlecloud.controllers.paddleservice.decide import decide
from paddlecloud.controllers.paddleservice.observe import Observed
from paddlecloud.controllers.paddleservice.template import Site

__all__ = ["Observed", "PaddleServiceController", "Site", "decide", "served_kinds"]
