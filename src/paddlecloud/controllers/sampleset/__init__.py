"""SampleSet: data that is imported once and cached on the nodes that train with it.

`decide` is the judgement, a pure function; `SampleSetController` feeds it from caches and cache servers and acts.
"""

from paddlecloud.controllers.sampleset.case import Observed, Options
from paddlecloud.controllers.sampleset.controller import SampleSetController
from paddlecloud.controllers.sampleset.decide import decide

__all__ = ["Observed", "Options", "SampleSetController", "decide"]
