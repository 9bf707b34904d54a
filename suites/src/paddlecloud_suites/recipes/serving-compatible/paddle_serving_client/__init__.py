"""The command line of Paddle Serving's client; see `convert`."""
