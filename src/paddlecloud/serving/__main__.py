import sys

from paddlecloud.serving.command import main

sys.exit(main())
