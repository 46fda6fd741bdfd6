{{/* Labels and annotations of the pods of a component: a dict with `root`, `component` and its `values`. */}}
{{- define "maxsimd.podMetadata" -}}
labels: {{- include "maxsimd.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Account, security and place of the pods of a component: a dict with `root`, `component` and `account`. */}}
{{- define "maxsimd.pod" -}}
{{- $values := index .root.Values .component -}}
serviceAccountName: {{ .account | default (include "maxsimd.serviceAccount" .root) }}
automountServiceAccountToken: false
# Otherwise Kubernetes sets MAXSIMD_PORT and the like for each Service. They are no settings.
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- with .root.Values.runAs }}
  {{- with .user }}
  runAsUser: {{ int64 . }}
  {{- end }}
  {{- with .group }}
  runAsGroup: {{ int64 . }}
  fsGroup: {{ int64 . }}
  {{- end }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- with $values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "maxsimd.selector" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- end }}

{{- define "maxsimd.container" -}}
image: {{ include "maxsimd.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# The home in the image belongs to its own user, and pods may run as another.
workingDir: /tmp
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Where a process finds tenants, keys and indexes. */}}
{{- define "maxsimd.storageEnvironment" -}}
# A folder of its own in the volume. The volume itself belongs to root, and the service makes its directory private.
- { name: MAXSIMD_DATA_DIR, value: /var/lib/maxsimd/data }
{{- if eq .Values.mode "cluster" }}
- { name: MAXSIMD_KEY_PEPPER_FILE, value: /run/maxsimd/key-pepper }
- { name: MAXSIMD_BLOBS_URL, value: {{ .Values.blobs.url | quote }} }
- name: MAXSIMD_CATALOG_URL
  valueFrom: { secretKeyRef: { name: {{ .Values.secretName }}, key: catalog-url } }
- name: MAXSIMD_LIMITER_URL
  valueFrom: { secretKeyRef: { name: {{ .Values.secretName }}, key: limiter-url } }
- { name: AWS_REGION, value: {{ .Values.blobs.region | quote }} }
{{- with .Values.blobs.endpoint }}
- { name: AWS_ENDPOINT_URL_S3, value: {{ . | quote }} }
{{- end }}
{{- with .Values.blobs.credentialsSecretName }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: { secretKeyRef: { name: {{ . }}, key: access-key-id } }
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: { secretKeyRef: { name: {{ . }}, key: secret-access-key } }
{{- end }}
{{- end }}
{{- if .Values.authoritiesSecretName }}
- { name: NODE_EXTRA_CA_CERTS, value: /run/authorities/ca.crt }
{{- end }}
{{- end }}

{{- define "maxsimd.storageMounts" -}}
- { name: temporary, mountPath: /tmp }
{{- if eq .Values.mode "cluster" }}
- { name: key-pepper, mountPath: /run/maxsimd, readOnly: true }
{{- end }}
{{- if .Values.authoritiesSecretName }}
- { name: authorities, mountPath: /run/authorities, readOnly: true }
{{- end }}
{{- end }}

{{- define "maxsimd.storageVolumes" -}}
- { name: temporary, emptyDir: { sizeLimit: 64Mi } }
{{- if eq .Values.mode "cluster" }}
- name: key-pepper
  secret:
    secretName: {{ .Values.secretName }}
    defaultMode: 0440
    items: [{ key: key-pepper, path: key-pepper }]
{{- end }}
{{- with .Values.authoritiesSecretName }}
- { name: authorities, secret: { secretName: {{ . }}, items: [{ key: ca.crt, path: ca.crt }] } }
{{- end }}
{{- end }}

{{/* The container that makes the first tenant. */}}
{{- define "maxsimd.firstTenant" -}}
name: first-tenant
{{ include "maxsimd.container" . }}
command: [node, /opt/maxsimd/first-tenant.mjs, {{ include "maxsimd.firstTenantSecret" . }}, {{ .Values.firstTenant.name | quote }}]
env: {{- include "maxsimd.storageEnvironment" . | nindent 2 }}
resources: { requests: { cpu: 100m, memory: 256Mi }, limits: { memory: 512Mi } }
{{- end }}

{{- define "maxsimd.firstTenantMounts" -}}
{{ include "maxsimd.storageMounts" . }}
- { name: kubernetes, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true }
{{- end }}

{{/* As Kubernetes mounts it where a token is mounted into every container of a pod. */}}
{{- define "maxsimd.firstTenantVolume" -}}
- name: kubernetes
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: { path: token, expirationSeconds: 3600 }
      - configMap: { name: kube-root-ca.crt, items: [{ key: ca.crt, path: ca.crt }] }
      - downwardAPI: { items: [{ path: namespace, fieldRef: { fieldPath: metadata.namespace } }] }
{{- end }}
