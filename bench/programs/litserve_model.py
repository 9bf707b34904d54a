"""The benchmark's model behind LitServe: `python litserve_model.py MODEL.onnx PORT`. Batches as ours does."""

import sys

import litserve
import numpy
import onnxruntime


class Model(litserve.LitAPI):
    def setup(self, device):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])

    def decode_request(self, request):
        return numpy.array(request["data"], dtype="float32")

    def batch(self, inputs):
        return numpy.stack(inputs)

    def predict(self, rows):
        return self.session.run(None, {"x": rows})[0]

    def unbatch(self, output):
        return list(output)

    def encode_response(self, output):
        return {"data": output.tolist()}


if __name__ == "__main__":
    server = litserve.LitServer(Model(max_batch_size=32, batch_timeout=0.0), accelerator="cpu", workers_per_device=1)
    server.run(host="127.0.0.1", port=int(sys.argv[2]), log_level="error", generate_client_file=False)
