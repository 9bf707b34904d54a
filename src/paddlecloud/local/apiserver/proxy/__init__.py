"""The `proxy` subresource of pods and Services: HTTP requests that the API server passes on to a pod.

As in kube-apiserver (pkg/registry/core/pod/rest, apimachinery/pkg/util/proxy), without upgrades of the connection.
"""
