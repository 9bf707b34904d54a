"""PaddleClas's export: `tools/export_model.py -c CONFIG -o Global.pretrained_model=… -o Global.save_inference_dir=…`"""

from _clas import engine

engine("export").export()
