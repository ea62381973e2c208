{{- define "switchyard.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The longest name made from this is that of a pod or a job, with 11 more characters. */}}
{{- define "switchyard.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 41 | trimSuffix "-" -}}
{{- else if contains (include "switchyard.name" .) .Release.Name -}}
{{- .Release.Name | trunc 41 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "switchyard.name" .) | trunc 41 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of all pods of the release. */}}
{{- define "switchyard.releaseLabels" -}}
app.kubernetes.io/name: {{ include "switchyard.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of the nodes: backups and tests are pods of the release, too, and no nodes. */}}
{{- define "switchyard.nodeLabels" -}}
{{ include "switchyard.releaseLabels" . }}
app.kubernetes.io/component: node
{{- end -}}

{{- define "switchyard.labels" -}}
{{ include "switchyard.releaseLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- end -}}

{{- define "switchyard.job" -}}
{{- $name := include "switchyard.fullname" . -}}
{{- contains "switchyard" $name | ternary $name (printf "%s-switchyard" $name) -}}
{{- end -}}

{{- define "switchyard.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "switchyard.authSecret" -}}
{{- default (include "switchyard.fullname" .) .Values.auth.existingSecret -}}
{{- end -}}

{{- define "switchyard.peerSecret" -}}
{{- default (printf "%s-tls" (include "switchyard.fullname" .)) .Values.peerTLS.existingSecret -}}
{{- end -}}

{{/* The URL at which pods of the release reach any node. */}}
{{- define "switchyard.url" -}}
{{- $scheme := ternary "https" "http" (ne .Values.tls.existingSecret "") -}}
{{- default (printf "%s://%s.%s.svc:%d" $scheme (include "switchyard.fullname" .) .Release.Namespace (int .Values.service.port)) .Values.internalURL -}}
{{- end -}}

{{- define "switchyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "switchyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "switchyard.rootTokenEnv" -}}
- name: SWITCHYARD_ROOT_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ include "switchyard.authSecret" . }}
      key: root-token
{{- end -}}

{{/* A value as a flag takes it. Numbers of values files are floats, which JSON shows in full. */}}
{{- define "switchyard.flagValue" -}}
{{- if kindIs "string" . -}}{{ . }}
{{- else if kindIs "slice" . -}}{{ join "," . }}
{{- else -}}{{ toJson . }}
{{- end -}}
{{- end -}}

{{/* What can't work, or would lose data, ends the rendering. */}}
{{- define "switchyard.check" -}}
{{- $v := .Values -}}
{{- if and .Release.IsInstall (lt (int $v.replicas) (int $v.bootstrapExpect)) -}}
{{- fail (printf "replicas (%d) is less than bootstrapExpect (%d): the cluster would never form" (int $v.replicas) (int $v.bootstrapExpect)) -}}
{{- end -}}
{{- if and (eq (int $v.bootstrapExpect) 1) (gt (int $v.replicas) 1) -}}
{{- fail (printf "bootstrapExpect is 1 and replicas is %d: each pod would form a cluster of its own" (int $v.replicas)) -}}
{{- end -}}
{{- if and (not $v.peerTLS.existingSecret) (gt (int $v.replicas) (int $v.peerTLS.nodes)) -}}
{{- fail (printf "replicas (%d) is more than peerTLS.nodes (%d), the number of pods that the certificate names" (int $v.replicas) (int $v.peerTLS.nodes)) -}}
{{- end -}}
{{- if and $v.tls.ca (not $v.tls.existingSecret) -}}
{{- fail "tls.ca needs tls.existingSecret" -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) -}}
{{- fail "ingress.enabled needs ingress.hosts" -}}
{{- end -}}
{{- $b := $v.backup -}}
{{- if $b.enabled -}}
{{- $volume := or $b.volume.existingClaim $b.volume.size -}}
{{- if and $b.s3.bucket $volume -}}
{{- fail "backup: give a bucket or a volume, not both" -}}
{{- else if not (or $b.s3.bucket $volume) -}}
{{- fail "backup.enabled needs backup.s3.bucket, backup.volume.existingClaim or backup.volume.size" -}}
{{- end -}}
{{- if and $b.s3.bucket (not $b.s3.credentialsSecret) -}}
{{- fail "backup.s3.bucket needs backup.s3.credentialsSecret" -}}
{{- end -}}
{{- if and $volume (eq $b.by "nodes") (gt (int $v.replicas) 1) (not $b.volume.existingClaim) (not (has "ReadWriteMany" $b.volume.accessModes)) -}}
{{- fail "backup.by nodes needs a volume with ReadWriteMany: every pod mounts it" -}}
{{- end -}}
{{- else if $b.drill.enabled -}}
{{- fail "backup.drill.enabled needs backup.enabled" -}}
{{- end -}}
{{- end -}}
