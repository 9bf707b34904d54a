"""`python3 resnet50_web_service.py MODEL_DIR DEVICE PORT`, as the manual starts it."""

import sys

from paddlecloud.serving.command import main


def serve(arguments):
    model, _device, port = arguments  # a GPU is used where the pod was given one
    return main(["--model", f"./{model}", "--name", "image", "--port", port])


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:]))

# mypy: ignore-errors
