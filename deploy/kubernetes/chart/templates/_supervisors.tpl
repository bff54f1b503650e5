{{/* Supervisors of a lane: a dictionary of `root`, `name`, `lane` and `of`, which are the values of the lane. */}}
{{- define "webfill.supervisors" -}}
{{- $root := .root -}}
{{- $image := .of.image | default $root.Values.image -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  labels:
    {{- include "webfill.labels" .name | nindent 4 }}
    webfill.io/metrics: supervisor
spec:
  clusterIP: None
  selector:
    {{- include "webfill.labels" .name | nindent 4 }}
  ports:
    - {name: metrics, port: 9465}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels:
    {{- include "webfill.labels" .name | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "webfill.labels" .name | nindent 6 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  labels:
    {{- include "webfill.labels" .name | nindent 4 }}
spec:
  {{- if not (and $root.Values.keda.enabled (eq .lane "http")) }}
  replicas: {{ .of.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "webfill.labels" .name | nindent 6 }}
  template:
    metadata:
      # Pods are replaced when the settings change. Mappings are loaded by `webfill reload`.
      annotations: {checksum/settings: {{ sha256sum $root.Values.settings }}}
      labels:
        {{- include "webfill.labels" .name | nindent 8 }}
        webfill.io/role: supervisor
    spec:
      {{- include "webfill.pod" $root | nindent 6 }}
      securityContext:
        {{- include "webfill.user" $root | nindent 8 }}
        seccompProfile:
          {{- toYaml (.of.seccompProfile | default (dict "type" "RuntimeDefault")) | nindent 10 }}
      # SIGTERM drains: it finishes the longest request (60 s and 10 s), stores the result, and waits 20 s for a
      # dispatcher that is away.
      terminationGracePeriodSeconds: 170
      containers:
        - name: supervisor
          image: {{ $image.repository }}:{{ $image.tag }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [tini, --, webfill, supervisor]
          args: [--config, /etc/webfill/webfill.toml, --lane, {{ .lane }}]
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            # All share the key `swarm`.
            - {name: WEBFILL_SUPERVISOR_ID, value: "swarm:$(POD_NAME)"}
            - {name: WEBFILL_SUPERVISOR_DISPATCHER, value: "{{ include "webfill.dispatchers" $root }}"}
            - {name: WEBFILL_SUPERVISOR_WORKERS, value: "{{ .of.workers }}"}
            {{- with .of.concurrency }}
            - {name: WEBFILL_WORKER_CONCURRENCY, value: "{{ . }}"}
            {{- end }}
            - {name: WEBFILL_STATE, value: /data/supervisor}
            - {name: WEBFILL_KEYS, value: /keys}
            {{- include "webfill.store" $root | nindent 12 }}
            - {name: WEBFILL_PROBES_SUPERVISOR, value: "0.0.0.0:8182"}
            - {name: WEBFILL_PROBES_ALLOW_NETWORK, value: "true"}
            - {name: WEBFILL_METRICS_SUPERVISOR, value: "0.0.0.0:9465"}
            - {name: WEBFILL_METRICS_ALLOW_NETWORK, value: "true"}
            {{- if eq .lane "browser" }}
            - {name: HOME, value: /data}
            {{- end }}
          ports:
            - {name: metrics, containerPort: 9465}
            - {name: probes, containerPort: 8182}
          # Negative while it has no dispatcher or no store: it waits for them, and a restart would not help.
          readinessProbe:
            httpGet: {path: /readyz, port: probes}
            periodSeconds: 5
          livenessProbe:
            httpGet: {path: /healthz, port: probes}
            initialDelaySeconds: 30
            periodSeconds: 20
          resources:
            {{- toYaml .of.resources | nindent 12 }}
          {{- include "webfill.confined" $root | nindent 10 }}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: keys, mountPath: /keys, readOnly: true}
            - {name: settings, mountPath: /etc/webfill, readOnly: true}
            - {name: tmp, mountPath: /tmp}
            {{- if eq .lane "browser" }}
            - {name: shm, mountPath: /dev/shm}
            {{- end }}
      volumes:
        # Readable by the group, which the pod has for it. The owner is root.
        - name: keys
          secret: {secretName: {{ $root.Values.secrets.supervisor }}, defaultMode: 0440}
        - name: settings
          configMap: {name: webfill-settings}
        # Logs and sockets. What it fetches is in the store.
        - name: data
          emptyDir: {sizeLimit: 2Gi}
        - name: tmp
          emptyDir: {}
        {{- if eq .lane "browser" }}
        - name: shm
          emptyDir: {medium: Memory, sizeLimit: 1Gi}
        {{- end }}
{{- end -}}
