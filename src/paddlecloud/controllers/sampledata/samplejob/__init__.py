"""SampleJob: something done to the data of a SampleSet, once or on a schedule.

`decide` is the judgement, a pure function; `SampleJobController` feeds it from caches and cache servers and acts.
"""

from paddlecloud.controllers.sampledata.samplejob.controller import SampleJobController
from paddlecloud.controllers.sampledata.samplejob.decide import Observed, decide

__all__ = ["Observed", "SampleJobController", "decide"]
