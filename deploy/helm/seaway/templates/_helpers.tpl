{{/* Name of the chart in names and labels. */}}
{{- define "seaway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Names of objects: the release, unless overridden. */}}
{{- define "seaway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "seaway.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "seaway.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "seaway.selector" -}}
app.kubernetes.io/name: {{ include "seaway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "seaway.labels" -}}
{{ include "seaway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The image of the server and of agents. A digest replaces the tag. */}}
{{- define "seaway.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "seaway.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "seaway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Name of the Secret with the key of notifications. */}}
{{- define "seaway.notifications" -}}
{{- default (printf "%s-notifications" (include "seaway.fullname" . | trunc 49 | trimSuffix "-")) .Values.notifications.existingSecret -}}
{{- end -}}

{{/* Whether replicas take turns. */}}
{{- define "seaway.turns" -}}
{{- if not .Values.database.sqlite }}yes{{ end -}}
{{- end -}}

{{/* Invalid combinations of values fail before the installation. */}}
{{- define "seaway.check" -}}
{{- $database := .Values.database -}}
{{- $clusters := .Values.clusters -}}
{{- if and $database.sqlite (gt (int .Values.replicas) 1) -}}
{{- fail "SQLite is for one process: set replicas to 1, or database.existingSecret to a secret with the URL of MariaDB, MySQL or PostgreSQL" -}}
{{- end -}}
{{- if and $database.sqlite $database.existingSecret -}}
{{- fail "database.sqlite and database.existingSecret exclude each other" -}}
{{- end -}}
{{- if not (or $database.sqlite $database.existingSecret) -}}
{{- fail "no database: set database.existingSecret to a secret whose key \"url\" has the URL of MariaDB, MySQL or PostgreSQL, or database.sqlite to true and replicas to 1" -}}
{{- end -}}
{{- $ways := 0 -}}
{{- range list $clusters.kubeconfigs.existingSecret $clusters.karmada.existingSecret $clusters.simulated -}}
{{- if . }}{{ $ways = add1 $ways }}{{ end -}}
{{- end -}}
{{- if ne (int $ways) 1 -}}
{{- fail "which clusters? set one of clusters.kubeconfigs.existingSecret, clusters.karmada.existingSecret and clusters.simulated" -}}
{{- end -}}
{{- if and $clusters.simulated (not $database.sqlite) (gt (int .Values.replicas) 1) -}}
{{- fail "simulated clusters live in one process: set replicas to 1" -}}
{{- end -}}
{{- $agents := .Values.agents -}}
{{- if $agents.gateways -}}
{{- if eq $agents.namespace .Release.Namespace -}}
{{- fail "agents.namespace: agents use the network of nodes; choose another namespace than that of the release" -}}
{{- end -}}
{{- if and (contains "{tenant}" $clusters.namespace) (hasPrefix (first (splitList "{tenant}" $clusters.namespace)) $agents.namespace) -}}
{{- fail "agents.namespace: it may be that of a tenant; choose a name without the prefix of clusters.namespace" -}}
{{- end -}}
{{- end -}}
{{- $leader := .Values.leader -}}
{{- if not (and (lt (float64 $leader.retrySeconds) (float64 $leader.renewSeconds)) (lt (float64 $leader.renewSeconds) (float64 $leader.leaseSeconds))) -}}
{{- fail "leader: retrySeconds must be less than renewSeconds, and that less than leaseSeconds" -}}
{{- end -}}
{{- end -}}

{{/* Format a value as TOML; integers from YAML are floats here. */}}
{{- define "seaway.toml" -}}
{{- if kindIs "string" . -}}
{{ . | toJson }}
{{- else if kindIs "bool" . -}}
{{ . }}
{{- else if kindIs "map" . -}}
{ {{- range $at, $key := keys . | sortAlpha }}{{ if $at }},{{ end }} {{ $key | toJson }} = {{ include "seaway.toml" (get $ $key) }}{{ end }} }
{{- else -}}
{{ . | toJson }}
{{- end -}}
{{- end -}}

{{/* All settings except the URL of the database, which is in its secret. */}}
{{- define "seaway.settings" -}}
{{- $clusters := dict "namespace" .Values.clusters.namespace -}}
{{- if .Values.clusters.kubeconfigs.existingSecret }}{{ $_ := set $clusters "kubeconfig_dir" "/etc/seaway/kubeconfigs" }}{{ end -}}
{{- if .Values.clusters.karmada.existingSecret }}{{ $_ := set $clusters "karmada" (dict "kubeconfig" "/etc/seaway/karmada/kubeconfig") }}{{ end -}}
{{- with .Values.clusters.usage -}}
{{- $usage := dict "interval_s" .everySeconds -}}
{{- if .exporters }}{{ $_ := set $usage "exporters" .exporters }}{{ end -}}
{{- $_ := set $clusters "usage" $usage -}}
{{- end -}}
{{- if .Values.clusters.templates.existingConfigMap }}{{ $_ := set $clusters "templates_dir" "/etc/seaway/templates" }}{{ end -}}
{{- if .Values.clusters.tenants.existingConfigMap }}{{ $_ := set $clusters "tenants_dir" "/etc/seaway/tenants" }}{{ end -}}
{{- $server := dict "host" "0.0.0.0" "port" 8080 -}}
{{- if .Values.tls.existingSecret }}{{ $_ := set $server "tls_certificate" "/etc/seaway/tls/tls.crt" }}{{ $_ := set $server "tls_key" "/etc/seaway/tls/tls.key" }}{{ end -}}
{{- $all := dict "server" $server "clusters" $clusters -}}
{{- if include "seaway.turns" . -}}
{{- $_ := set $all "leader" (dict "lease" (include "seaway.fullname" .) "lease_duration_s" .Values.leader.leaseSeconds "renew_deadline_s" .Values.leader.renewSeconds "retry_period_s" .Values.leader.retrySeconds) -}}
{{- $_ := set $all "database" (dict "backup_interval_h" 0) -}}
{{- end -}}
{{- $all = mergeOverwrite $all (deepCopy .Values.settings) -}}
{{- range $section := keys $all | sortAlpha }}
[{{ $section }}]
{{- $values := get $all $section }}
{{- range $name := keys $values | sortAlpha }}
{{ $name }} = {{ include "seaway.toml" (get $values $name) }}
{{- end }}
{{ end -}}
{{- end -}}
