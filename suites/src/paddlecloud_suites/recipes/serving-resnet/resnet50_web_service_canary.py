"""The canary of the web service: answers carry `isCanary`."""

import os
import sys

from resnet50_web_service import serve

if __name__ == "__main__":
    os.environ["IS_CANARY"] = "true"
    sys.exit(serve(sys.argv[1:]))

# mypy: ignore-errors
