{{- define "maxsimd.labels" -}}
app.kubernetes.io/name: maxsimd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "maxsimd.selector" -}}
app.kubernetes.io/name: maxsimd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "maxsimd.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "maxsimd.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- define "maxsimd.firstTenantSecret" -}}
{{ .Values.firstTenant.secretName | default (printf "%s-first-tenant" .Release.Name) }}
{{- end }}

{{/* The list of a cluster's components that have pods for good. */}}
{{- define "maxsimd.components" -}}
{{ ternary "node encoder" "node" (eq .Values.mode "cluster") }}
{{- end }}
