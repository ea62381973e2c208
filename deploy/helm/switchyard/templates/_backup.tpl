{{/* The directory or the bucket of the backups. */}}
{{- define "switchyard.backupPlace" -}}
{{- if .Values.backup.s3.bucket -}}
{{- printf "s3://%s/%s" .Values.backup.s3.bucket .Values.backup.s3.prefix | trimSuffix "/" -}}
{{- else -}}
/backups/switchyard
{{- end -}}
{{- end -}}

{{- define "switchyard.backupClaim" -}}
{{- default (printf "%s-backups" (include "switchyard.fullname" .)) .Values.backup.volume.existingClaim -}}
{{- end -}}

{{/* The credentials of the bucket. */}}
{{- define "switchyard.s3Env" -}}
{{- $secret := .Values.backup.s3.credentialsSecret -}}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: access-key-id
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: secret-access-key
- name: AWS_SESSION_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: session-token
      optional: true
{{- end -}}

{{/* Mounts that a node and a job need for backups. */}}
{{- define "switchyard.backupMounts" -}}
{{- if not .Values.backup.s3.bucket }}
- name: backups
  mountPath: /backups
{{- end }}
{{- if .Values.backup.encryption.existingSecret }}
- name: backup-key
  mountPath: /etc/switchyard/backup
  readOnly: true
{{- end }}
{{- end -}}

{{- define "switchyard.backupVolumes" -}}
{{- if not .Values.backup.s3.bucket }}
- name: backups
  persistentVolumeClaim:
    claimName: {{ include "switchyard.backupClaim" . }}
{{- end }}
{{- if .Values.backup.encryption.existingSecret }}
- name: backup-key
  secret:
    secretName: {{ .Values.backup.encryption.existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .Values.backup.encryption.key }}
        path: backup.key
{{- end }}
{{- end -}}

{{/* Flags of the commands `backup` and `backup drill` about the archive. */}}
{{- define "switchyard.archiveArgs" -}}
{{- if .Values.backup.encryption.existingSecret }}
- --key-file=/etc/switchyard/backup/backup.key
{{- end }}
{{- if .Values.backup.s3.bucket }}
{{- with .Values.backup.s3.endpoint }}
- --s3-endpoint={{ . }}
{{- end }}
{{- with .Values.backup.s3.region }}
- --s3-region={{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The common parts of a CronJob, whose name may have 52 characters; .job has the name, the schedule, the arguments and the pod's volumes. */}}
{{- define "switchyard.cronJob" -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "switchyard.fullname" .root | trunc (sub 51 (len .name) | int) | trimSuffix "-" }}-{{ .name }}
  labels:
    {{- include "switchyard.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
spec:
  schedule: {{ .schedule | quote }}
  {{- with .root.Values.backup.timeZone }}
  timeZone: {{ . | quote }}
  {{- end }}
  concurrencyPolicy: Forbid
  # A job that could not be started in time is left to the next turn.
  startingDeadlineSeconds: 3600
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 3
      activeDeadlineSeconds: 43200
      template:
        metadata:
          labels:
            {{- include "switchyard.releaseLabels" .root | nindent 12 }}
            app.kubernetes.io/component: {{ .name }}
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          {{- with .root.Values.imagePullSecrets }}
          imagePullSecrets:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            {{- include "switchyard.podSecurity" .root | nindent 12 }}
          {{- with .root.Values.nodeSelector }}
          nodeSelector:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with .root.Values.tolerations }}
          tolerations:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          containers:
            - name: {{ .name }}
              image: {{ include "switchyard.image" .root | quote }}
              imagePullPolicy: {{ .root.Values.image.pullPolicy }}
              args:
                {{- .args | nindent 16 }}
              {{- with .env }}
              env:
                {{- . | nindent 16 }}
              {{- end }}
              resources:
                {{- toYaml .root.Values.backup.resources | nindent 16 }}
              securityContext:
                {{- include "switchyard.containerSecurity" .root | nindent 16 }}
              volumeMounts:
                {{- .mounts | nindent 16 }}
          volumes:
            {{- .volumes | nindent 12 }}
{{- end -}}

{{/* A volume that lives as long as the pod of a drill. */}}
{{- define "switchyard.scratchVolume" -}}
- name: scratch
  ephemeral:
    volumeClaimTemplate:
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .Values.backup.drill.scratchClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests:
            storage: {{ .Values.backup.drill.scratchSize }}
{{- end -}}

{{/* The authority of the nodes' certificate for clients, for commands of the release. */}}
{{- define "switchyard.caEnv" -}}
- name: SSL_CERT_FILE
  value: /etc/switchyard/public-ca/ca.crt
{{- end -}}

{{- define "switchyard.caMount" -}}
- name: public-ca
  mountPath: /etc/switchyard/public-ca
  readOnly: true
{{- end -}}

{{- define "switchyard.caVolume" -}}
- name: public-ca
  secret:
    secretName: {{ .Values.tls.existingSecret }}
    defaultMode: 0440
    items:
      - key: ca.crt
        path: ca.crt
{{- end -}}
