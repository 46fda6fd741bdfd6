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

{{/* Every encoder by its own name: a connection goes to one of them alone. */}}
{{- define "maxsimd.encoders" -}}
{{- $addresses := list -}}
{{- range $place := until (int .Values.encoder.replicas) -}}
{{- $addresses = append $addresses (printf "%s-encoder-%d.%s-encoder:50051" $.Release.Name $place $.Release.Name) -}}
{{- end -}}
{{ join "," $addresses }}
{{- end }}

{{- define "maxsimd.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "maxsimd.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
