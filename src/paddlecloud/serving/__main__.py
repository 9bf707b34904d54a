"""`python -m paddlecloud.serving`: the inference server."""

import sys

from paddlecloud.serving.command import main

sys.exit(main())
