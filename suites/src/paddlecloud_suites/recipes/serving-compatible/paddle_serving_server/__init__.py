"""The command line of Paddle Serving's server; see `serve`."""
