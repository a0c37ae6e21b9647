{{/* The roles that are installed. */}}
{{- define "release.roles" -}}
{{- $roles := list "controller" "payloads" -}}
{{- if .Values.imageStreams -}}
{{- $roles = append $roles "imports" -}}
{{- end -}}
{{- toYaml $roles -}}
{{- end }}

{{- define "release.namespaces" -}}
{{- join "," (.Values.releaseNamespaces | default (list .Release.Namespace)) -}}
{{- end }}

{{/* The arguments of a role. */}}
{{- define "release.args" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $values := $root.Values -}}
{{- $args := list "--namespace=$(POD_NAMESPACE)" "--listen=0.0.0.0:8080" -}}
{{- if eq $role "controller" -}}
{{- $args = append $args (printf "--release-namespace=%s" (include "release.namespaces" $root)) -}}
{{- $args = append $args (printf "--job-namespace=%s" ($values.jobNamespace | default $root.Release.Namespace)) -}}
{{- $args = append $args "--job-config=/etc/neap/jobs" -}}
{{- with $values.publishNamespaces -}}
{{- $args = append $args (printf "--publish-namespace=%s" (join "," .)) -}}
{{- end -}}
{{- with $values.prowNamespace -}}
{{- $args = append $args (printf "--prow-namespace=%s" .) -}}
{{- end -}}
{{- with $values.registry -}}
{{- $args = append $args (printf "--registry=%s" .) -}}
{{- end -}}
{{- end -}}
{{- if eq $role "payloads" -}}
{{- $args = append $args (printf "--release-namespace=%s" (first (splitList "," (include "release.namespaces" $root)))) -}}
{{- $args = append $args (printf "--job-namespace=%s" ($values.jobNamespace | default $root.Release.Namespace)) -}}
{{- end -}}
{{- toYaml (concat $args (index $values $role).args) -}}
{{- end }}

{{- define "release.selector" -}}
app.kubernetes.io/name: neap-release
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "release.labels" -}}
{{ include "release.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end }}
