"""A subset of Knative Serving on one machine: its four kinds, its autoscaler, and a gateway of several processes."""
