"""SampleSet: data that is imported once and cached on the nodes that train with it.

`decide` is the judgement, a pure function; `SampleSetController` feeds it from caches and cache servers and acts.
"""

from paddlecloud.controllers.sampledata.sampleset.case import Observed, SampleSetOptions
from paddlecloud.controllers.sampledata.sampleset.controller import SampleSetController
from paddlecloud.controllers.sampledata.sampleset.decide import decide

__all__ = ["Observed", "SampleSetController", "SampleSetOptions", "decide"]
