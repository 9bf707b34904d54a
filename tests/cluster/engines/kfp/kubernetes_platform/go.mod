module github.com/kubeflow/pipelines/kubernetes_platform

go 1.24

require google.golang.org/protobuf v1.36.6
