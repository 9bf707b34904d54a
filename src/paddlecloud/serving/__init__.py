"""The inference server: a folder with a Paddle or ONNX model becomes an HTTP and gRPC service.

    python -m paddlecloud.serving --model ./model_dir --port 8080

It serves the Open Inference Protocol (`v2`, `grpc_service`) and the shapes that clients of Paddle Serving know
(`paddle_serving`). It runs inside pods and knows nothing of Kubernetes: scaling, traffic and roll-outs are the
PaddleService's business. Needs the extra `paddlecloud[serving]`, and Paddle where the model is Paddle's.
"""
