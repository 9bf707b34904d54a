{{/* The Deployments: values key → the controllers its process runs. */}}
{{- define "paddlecloud.controllers" -}}
paddlejob: [paddlejob{{ if .Values.paddlejob.kubeflow }}, kubeflow-paddlejob{{ end }}]
sampleset: [sampleset, samplejob]
serving: [paddleservice]
models: [model]
tenants: [tenant]
{{- end }}

{{- define "paddlecloud.accounts" -}}
paddlejob: paddlejob-sa
sampleset: sampleset-sa
serving: paddle-serving-sa
models: models-sa
tenants: tenants-sa
{{- end }}

{{- define "paddlecloud.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Cluster-scoped names carry the namespace: two releases may have the same name in two namespaces. */}}
{{- define "paddlecloud.clustername" -}}
{{ printf "%s-%s" .Release.Namespace (include "paddlecloud.fullname" .) }}
{{- end }}

{{- define "paddlecloud.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Selects the pods of one controller: dict root, name. */}}
{{- define "paddlecloud.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{/* The image of one controller: its own keys, else those for all, else the release's version. */}}
{{- define "paddlecloud.image" -}}
{{- $own := .own | default dict -}}
{{- $all := .root.Values.image -}}
{{- $registry := coalesce $own.registry .root.Values.global.imageRegistry $all.registry -}}
{{- $repository := coalesce $own.repository $all.repository -}}
{{- $tag := coalesce $own.tag $all.tag .root.Chart.AppVersion -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ $repository }}:{{ $tag }}
{{- end }}

{{- define "paddlecloud.securityContext" -}}
{{ toYaml (.Values.containerSecurityContext | default dict) }}
{{- end }}

{{- define "paddlecloud.podSecurityContext" -}}
{{ toYaml (.Values.podSecurityContext | default dict) }}
{{- end }}

{{/* One kind of affinity from its preset: dict strength ("", soft or hard), and what to prefer or require. */}}
{{- define "paddlecloud.preset" -}}
{{- if eq .strength "hard" }}
requiredDuringSchedulingIgnoredDuringExecution: {{ toJson .require }}
{{- else if eq .strength "soft" }}
preferredDuringSchedulingIgnoredDuringExecution: [{{ toJson (set .prefer "weight" 1) }}]
{{- end }}
{{- end }}

{{/* Affinity of one controller: what was given, else what its presets say. */}}
{{- define "paddlecloud.affinity" -}}
{{- $own := .own -}}
{{- $pods := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" (include "paddlecloud.selector" . | fromYaml)) -}}
{{- $nodes := dict "matchExpressions" (list (dict "key" $own.nodeAffinityPreset.key "operator" "In" "values" $own.nodeAffinityPreset.values)) -}}
{{- $presets := dict
  "podAffinity" (dict "strength" $own.podAffinityPreset "require" (list $pods) "prefer" (dict "podAffinityTerm" $pods))
  "podAntiAffinity" (dict "strength" $own.podAntiAffinityPreset "require" (list $pods) "prefer" (dict "podAffinityTerm" $pods))
  "nodeAffinity" (dict "strength" $own.nodeAffinityPreset.type "require" (dict "nodeSelectorTerms" (list $nodes)) "prefer" (dict "preference" $nodes)) -}}
{{- $affinity := dict -}}
{{- range $kind, $preset := $presets }}
{{- with include "paddlecloud.preset" $preset | fromYaml }}{{ $_ := set $affinity $kind . }}{{ end }}
{{- end }}
{{- with $own.affinity | default $affinity }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Whether a Secret is ours to make: absent, or made by this release. One that somebody made by hand stays as it is. */}}
{{- define "paddlecloud.ours" -}}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace .name -}}
{{- if or (not $there) (eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there) .root.Release.Name) -}}
yes
{{- end -}}
{{- end }}

{{- /* Ports at which controllers reach the API server: those of the values, and what the cluster itself says at an
installation. `helm template` asks no cluster. */}}
{{- define "paddlecloud.apiserverports" -}}
{{- $ports := list }}
{{- range .Values.networkPolicy.apiServerPorts }}
{{- $ports = append $ports (int .) }}
{{- end }}
{{- range (lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes").ports }}
{{- $ports = append $ports (int .port) }}
{{- end }}
{{- $ports | uniq | toJson }}
{{- end }}
