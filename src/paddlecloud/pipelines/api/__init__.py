"""The REST API of Kubeflow Pipelines (v1beta1 and v2beta1) on objects of Kubernetes, with the rights of the caller."""
