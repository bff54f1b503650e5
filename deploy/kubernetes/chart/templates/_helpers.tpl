{{/* The addresses of all dispatchers. Whoever does not serve does not answer, and the next one is tried. */}}
{{- define "webfill.dispatchers" -}}
{{- range $n := until (int .Values.dispatcher.replicas) -}}
{{- if $n }},{{ end }}tcp://webfill-dispatcher-{{ $n }}.webfill-dispatcher:5555
{{- end -}}
{{- end -}}

{{- define "webfill.labels" -}}
app.kubernetes.io/name: webfill
app.kubernetes.io/component: {{ . }}
{{- end -}}

{{/* What holds for all pods. */}}
{{- define "webfill.pod" -}}
# A service named webfill-dispatcher would otherwise become variables that begin with WEBFILL_, which are settings.
enableServiceLinks: false
automountServiceAccountToken: false
{{- end -}}

{{/* The user of the image. Readers of documents confine themselves further, by landlock and seccomp, for which they
need no right. */}}
{{- define "webfill.user" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
{{- end -}}

{{- define "webfill.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "webfill.store" -}}
- name: WEBFILL_STORE
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.store }}, key: uri}}
{{- end -}}
