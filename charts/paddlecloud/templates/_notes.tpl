{{/* What the notes after an installation are made of: lists, so that NOTES.txt has nothing to decide. */}}

{{/* Engines that features need. */}}
{{- define "paddlecloud.engines" -}}
volcano:
  shown: scheduling.volcano.sh/v1beta1
  without: jobs with a schedulingPolicy run without a gang, and say so
  install: https://volcano.sh/en/docs/installation (tested with 1.14)
knative:
  shown: serving.knative.dev/v1
  without: PaddleServices become Deployments, and do not scale to zero
  install: https://knative.dev/docs/install (tested with 1.19 and Kourier)
{{- end }}

{{/* Charts that come along with this one, by the names of their switches: none, except in charts/with-dependencies. */}}
{{- define "paddlecloud.brought" -}}
{{- range .Chart.Dependencies }}
{{ default .Name .Alias }}: true
{{- end }}
{{- end }}

{{/* Switches that ask for a chart which does not come along. One that says no is stronger than the tag. */}}
{{- define "paddlecloud.missed" -}}
{{- $brought := include "paddlecloud.brought" . | fromYaml }}
{{- range $switch := list "hostpath" "juicefs" "redis" "jupyterhub" "knative" "pipelines" "volcano" }}
{{- $asked := (index $.Values $switch).enabled }}
{{- if kindIs "invalid" $asked }}{{ $asked = index $.Values.tags "all-dep" }}{{ end }}
{{- if and $asked (not (hasKey $brought $switch)) }}
{{ $switch }}: true
{{- end }}
{{- end }}
{{- end }}

{{/* Values that were set and do nothing, and why. */}}
{{- define "paddlecloud.meaningless" -}}
{{- $brought := include "paddlecloud.brought" . | fromYaml }}
{{- if and (not $brought) (ne .Values.global.storageClass "hostpath") }}
global.storageClass: claims name their own class
{{- end }}
{{- if and (not (hasKey $brought "redis")) (ne .Values.global.redis.password "paddlepaddle") }}
global.redis.password: no Redis comes along; dataCenter.metaurl carries its own
{{- end }}
{{- if .Values.kubeVersion }}
kubeVersion: the cluster is asked
{{- end }}
{{- with .Values.serving.proxyImage }}
{{- if or .registry .repository .tag }}
serving.proxyImage: metrics are served without a proxy
{{- end }}
{{- end }}
{{- range $name := list "paddlejob" "sampleset" "serving" }}
{{- if dig "image" "debug" false (index $.Values $name) }}
{{ $name }}.image.debug: controllers always say what they do
{{- end }}
{{- end }}
{{- end }}
