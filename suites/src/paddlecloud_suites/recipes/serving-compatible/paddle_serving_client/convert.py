"""`python3 -m paddle_serving_client.convert`: an exported model becomes the folder that `serve` takes.

This project's server reads exported models as they are, so there is little to do: copy, and call the first output what
the published example calls it.
"""

import argparse
import shutil
from pathlib import Path

from paddlecloud.serving import model_folder, runners


def convert(folder, program, params, server):
    target = Path(server)
    target.mkdir(parents=True, exist_ok=True)
    for name in (program, params):
        shutil.copy2(Path(folder) / name, target / f"inference{Path(name).suffix}")
    output = runners.load(model_folder.find(target), threads=1).outputs[0].name
    (target / model_folder.SETTINGS).write_text(f"outputs: {{sigmoid_0.tmp_0: {output}}}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="paddle_serving_client.convert")
    parser.add_argument("--dirname", required=True)
    parser.add_argument("--model_filename", default="inference.pdmodel")
    parser.add_argument("--params_filename", default="inference.pdiparams")
    parser.add_argument("--serving_server", default="serving_server")
    asked, _ = parser.parse_known_args()
    convert(asked.dirname, asked.model_filename, asked.params_filename, asked.serving_server)
    print(f"converted {asked.dirname} to {asked.serving_server}")

# mypy: ignore-errors
