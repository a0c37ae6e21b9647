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
{{- /* The name is that of KubeElasti's chart, whatever the values: the selector of a Deployment is immutable. */}}
{{- define "elasti.selector" -}}
app.kubernetes.io/name: elasti
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
{{- /* Merges a list of maps. For a duplicate key, the first map takes precedence. */}}
{{- define "elasti.merged" -}}
{{- $all := dict }}
{{- range . }}
{{- $all = merge $all (default (dict) .) }}
{{- end }}
{{- with $all }}{{ toYaml . }}{{ end }}
{{- end }}
{{- /* Labels. Takes a list: the context, the object's own labels, and maps from the values, the most specific first.
  The name in the object's own labels takes precedence over that of the selector, as in KubeElasti's chart. */}}
{{- define "elasti.labels" -}}
{{- $root := first . }}
{{- $own := index . 1 | default dict }}
{{- $named := pick $own "app.kubernetes.io/name" }}
{{- $selector := include "elasti.selector" $root | fromYaml }}
{{- $release := dict "app.kubernetes.io/part-of" "elasti" "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) }}
{{- include "elasti.merged" (concat (list $named $selector $release) (rest .) (list $root.Values.global.labels)) }}
{{- end }}
{{- /* The labels that the objects of the operator and of the resolvers have in KubeElasti's chart. */}}
{{- define "elasti.operatorLabels" -}}
app.kubernetes.io/name: elasti-operator
{{- end }}
{{- define "elasti.resolverLabels" -}}
app.kubernetes.io/name: elasti-resolver
{{- end }}
{{- /* Labels of pods: without the version of the chart, because pods are replaced when their labels change. */}}
{{- define "elasti.podLabels" -}}
{{- $root := first . }}
{{- $selector := include "elasti.selector" $root | fromYaml }}
{{- include "elasti.merged" (concat (list $selector) (rest .) (list $root.Values.global.labels)) }}
{{- end }}
{{- /* Annotations. Takes a list: the context, and maps from the values, the most specific first. Empty if they are. */}}
{{- define "elasti.annotations" -}}
{{- $root := first . }}
{{- with include "elasti.merged" (append (rest .) $root.Values.global.annotations) -}}
annotations:
{{ indent 2 . }}
{{- end }}
{{- end }}
{{- /* Labels and annotations of an object. Takes a list: the context, the values of its part, and its own labels. */}}
{{- define "elasti.metadata" -}}
{{- $root := index . 0 }}{{- $part := index . 1 }}{{- $own := index . 2 -}}
labels:
  {{- include "elasti.labels" (list $root $own $part.commonLabels) | nindent 2 }}
{{- with include "elasti.annotations" (list $root $part.commonAnnotations) }}
{{ . }}
{{- end }}
{{- end }}
{{- /* The scrape annotations of a pod. Takes the port. */}}
{{- define "elasti.scraped" -}}
prometheus.io/scrape: "true"
prometheus.io/path: /metrics
prometheus.io/port: {{ . | quote }}
{{- end }}
{{- /* An image reference. Takes a list: the image values and the context. */}}
{{- define "elasti.image" -}}
{{- $image := index . 0 }}{{- $root := index . 1 }}
{{- $repository := default $root.Values.global.image.repository $image.repository | required "set global.image.repository to the image that you have pushed, for example --set global.image.registry=registry.example.com --set global.image.repository=neap" }}
{{- with default $root.Values.global.image.registry $image.registry }}{{ . }}/{{ end }}{{ $repository }}:{{ default $root.Chart.AppVersion $image.tag }}
{{- end }}
{{- /* Rules to scale the kinds of global.scaleTargets. */}}
{{- define "elasti.ownTargetRules" -}}
{{- range .Values.global.scaleTargets }}
- apiGroups: [{{ .apiGroup | quote }}]
  resources: [{{ .resource | quote }}]
  verbs: ["get", "list", "watch"]
- apiGroups: [{{ .apiGroup | quote }}]
  resources: [{{ printf "%s/scale" .resource | quote }}]
  verbs: ["get", "patch"]
{{- end }}
{{- end }}
{{- /* The namespaces in which permissions are granted, if they are restricted. */}}
{{- define "elasti.namespaces" -}}
{{- append .Values.global.allowedNamespaces .Release.Namespace | uniq | toJson }}
{{- end }}
{{- /* Variables by which operator and resolvers find each other. Both get the same values. */}}
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
{{- /* Variables for Sentry. Takes a list: the Sentry values, the key of the DSN in the Secret, and the context. */}}
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
{{- /* Scheduling fields of a pod. Takes a list: the values of its part and the context. */}}
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
