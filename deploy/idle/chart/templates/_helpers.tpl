{{- define "elasti.name" -}}
{{- default .Chart.Name .Values.global.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- define "elasti.fullname" -}}
{{- if .Values.global.fullnameOverride }}
{{- .Values.global.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := include "elasti.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}
{{- define "elasti.operator" -}}
{{ include "elasti.fullname" . }}-operator-controller-manager
{{- end }}
{{- define "elasti.operatorService" -}}
{{ include "elasti.fullname" . }}-operator-controller-service
{{- end }}
{{- define "elasti.resolver" -}}
{{ include "elasti.fullname" . }}-resolver
{{- end }}
{{- define "elasti.selector" -}}
app.kubernetes.io/name: {{ include "elasti.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "elasti.labels" -}}
{{ include "elasti.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.global.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- /* A list of an image block, its values and the context. */}}
{{- define "elasti.image" -}}
{{- $image := index . 0 }}{{- $root := index . 1 }}
{{- default $root.Values.global.image.registry $image.registry }}/{{ $image.repository }}:{{ $image.tag }}
{{- end }}
{{- /* The namespaces that rights are given in, if not everywhere. */}}
{{- define "elasti.namespaces" -}}
{{- append .Values.global.allowedNamespaces .Release.Namespace | uniq | toJson }}
{{- end }}
{{- /* Where operator and resolvers find each other. Both are told the same. */}}
{{- define "elasti.places" -}}
- name: ELASTI_RESOLVER_NAMESPACE
  value: {{ .Release.Namespace }}
- name: ELASTI_RESOLVER_DEPLOYMENT_NAME
  value: {{ include "elasti.resolver" . }}
- name: ELASTI_RESOLVER_SERVICE_NAME
  value: {{ include "elasti.resolver" . }}-service
- name: ELASTI_RESOLVER_SERVICE_ACCOUNT
  value: {{ include "elasti.resolver" . }}
- name: ELASTI_RESOLVER_PORT
  value: {{ .Values.elastiResolver.service.port | quote }}
- name: ELASTI_RESOLVER_PROXY_PORT
  value: {{ .Values.elastiResolver.reverseProxyService.port | quote }}
- name: ELASTI_OPERATOR_NAMESPACE
  value: {{ .Release.Namespace }}
- name: ELASTI_OPERATOR_DEPLOYMENT_NAME
  value: {{ include "elasti.operator" . }}
- name: ELASTI_OPERATOR_SERVICE_NAME
  value: {{ include "elasti.operatorService" . }}
- name: ELASTI_OPERATOR_SERVICE_ACCOUNT
  value: {{ include "elasti.operator" . }}
- name: ELASTI_OPERATOR_PORT
  value: {{ .Values.elastiController.service.port | quote }}
- name: KUBERNETES_CLUSTER_DOMAIN
  value: {{ .Values.global.kubernetesClusterDomain }}
{{- end }}
{{- /* A list of where errors are sent, the key of the address, and the context. */}}
{{- define "elasti.sentry" -}}
{{- $sentry := index . 0 }}{{- $key := index . 1 }}{{- $root := index . 2 }}
{{- if $sentry.enabled }}
- name: SENTRY_DSN
  valueFrom:
    secretKeyRef:
      name: {{ $root.Values.global.secretName }}
      key: {{ $key }}
- name: SENTRY_ENVIRONMENT
  value: {{ $sentry.environment | quote }}
{{- end }}
{{- end }}
{{- /* A list of a part's values and the context: where its pods may run. */}}
{{- define "elasti.scheduling" -}}
{{- $part := index . 0 }}{{- $root := index . 1 }}
{{- with $root.Values.global.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with $part.affinity }}
affinity:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- end }}
