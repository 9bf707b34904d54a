{{/* The three Deployments: values key → the controllers its process runs. */}}
{{- define "paddlecloud.controllers" -}}
paddlejob: [paddlejob{{ if .Values.paddlejob.kubeflow }}, kubeflow-paddlejob{{ end }}]
sampleset: [sampleset, samplejob]
serving: [paddleservice]
{{- end }}

{{- define "paddlecloud.accounts" -}}
paddlejob: paddlejob-sa
sampleset: sampleset-sa
serving: paddle-serving-sa
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

{{/* Affinity of one controller: what was given, else the presets. */}}
{{- define "paddlecloud.affinity" -}}
{{- $own := .own -}}
{{- $term := dict "labelSelector" (dict "matchLabels" (include "paddlecloud.selector" . | fromYaml)) "topologyKey" "kubernetes.io/hostname" -}}
{{- if $own.affinity -}}
{{ toYaml $own.affinity }}
{{- else -}}
{{- range $kind, $preset := dict "podAffinity" $own.podAffinityPreset "podAntiAffinity" $own.podAntiAffinityPreset }}
{{- if eq $preset "hard" }}
{{ $kind }}:
  requiredDuringSchedulingIgnoredDuringExecution:
    - {{ toYaml $term | nindent 6 | trim }}
{{- else if eq $preset "soft" }}
{{ $kind }}:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      podAffinityTerm:
        {{- toYaml $term | nindent 8 }}
{{- end }}
{{- end }}
{{- with $own.nodeAffinityPreset }}
{{- $match := list (dict "key" .key "operator" "In" "values" .values) }}
{{- if eq .type "hard" }}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions: {{ toYaml $match | nindent 10 }}
{{- else if eq .type "soft" }}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 1
      preference:
        matchExpressions: {{ toYaml $match | nindent 10 }}
{{- end }}
{{- end }}
{{- end -}}
{{- end }}

{{/* Whether a Secret is ours to make: absent, or made by this release. One that somebody made by hand stays as it is. */}}
{{- define "paddlecloud.ours" -}}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace .name -}}
{{- if or (not $there) (eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there) .root.Release.Name) -}}
yes
{{- end -}}
{{- end }}
