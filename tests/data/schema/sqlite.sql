CREATE TABLE acknowledgements (
  name VARCHAR(63) NOT NULL,
  "of" VARCHAR(600) NOT NULL,
  actor VARCHAR(255) NOT NULL,
  at_ns BIGINT NOT NULL,
  PRIMARY KEY (name, "of")
);
CREATE TABLE agents (
  gateway VARCHAR(255) NOT NULL,
  started_ns BIGINT NOT NULL,
  number BIGINT NOT NULL,
  at_ns BIGINT NOT NULL,
  address VARCHAR(255) NOT NULL,
  reports BIGINT NOT NULL,
  rounds BIGINT NOT NULL,
  dropped BIGINT NOT NULL,
  discarded BIGINT NOT NULL,
  PRIMARY KEY (gateway)
);
CREATE TABLE attempts (
  job_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  state VARCHAR(16) NOT NULL,
  spec TEXT NOT NULL,
  policy VARCHAR(255) NOT NULL,
  placements TEXT NOT NULL,
  created_ns BIGINT NOT NULL,
  expires_ns BIGINT NOT NULL,
  why TEXT NOT NULL,
  reason TEXT NOT NULL,
  running_ns BIGINT,
  ended_ns BIGINT,
  amounts TEXT NOT NULL,
  PRIMARY KEY (job_id, number)
);
CREATE INDEX ix_attempts_ended ON attempts (ended_ns, job_id, number);
CREATE INDEX ix_attempts_state ON attempts (state, job_id, number);
CREATE TABLE audit (
  at_ns BIGINT NOT NULL,
  actor VARCHAR(255) NOT NULL,
  role VARCHAR(255) NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  verb TEXT NOT NULL,
  target TEXT NOT NULL,
  status INTEGER NOT NULL,
  address VARCHAR(255) NOT NULL,
  token_id VARCHAR(255) NOT NULL,
  issuer VARCHAR(255) NOT NULL,
  requests INTEGER NOT NULL,
  changes TEXT,
  id INTEGER NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX ix_audit_at ON audit (at_ns);
CREATE TABLE cluster_facts (
  cluster VARCHAR(255) NOT NULL,
  facts TEXT NOT NULL,
  actor VARCHAR(255) NOT NULL,
  at_ns BIGINT NOT NULL,
  PRIMARY KEY (cluster)
);
CREATE TABLE cluster_inventories (
  cluster VARCHAR(255) NOT NULL,
  inventory TEXT NOT NULL,
  PRIMARY KEY (cluster)
);
CREATE TABLE cluster_names (
  name VARCHAR(255) NOT NULL,
  uid VARCHAR(255) NOT NULL,
  server VARCHAR(255) NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE cluster_reports (
  cluster VARCHAR(255) NOT NULL,
  state VARCHAR(16) NOT NULL,
  reason TEXT NOT NULL,
  reported_ns BIGINT NOT NULL,
  at_ns BIGINT NOT NULL,
  PRIMARY KEY (cluster)
);
CREATE TABLE cluster_samples (
  at_ns INTEGER NOT NULL,
  cluster VARCHAR(255) NOT NULL,
  state VARCHAR(16) NOT NULL,
  nodes INTEGER NOT NULL,
  gpus INTEGER NOT NULL,
  gpu_milli BIGINT NOT NULL,
  gpu_milli_used BIGINT NOT NULL,
  gpu_memory_mib BIGINT NOT NULL,
  gpu_memory_mib_used BIGINT NOT NULL,
  cpu_milli BIGINT NOT NULL,
  cpu_milli_used BIGINT NOT NULL,
  memory_mib BIGINT NOT NULL,
  memory_mib_used BIGINT NOT NULL,
  jobs INTEGER NOT NULL,
  PRIMARY KEY (at_ns, cluster)
)
 WITHOUT ROWID
;
CREATE INDEX ix_cluster_samples_cluster ON cluster_samples (cluster, at_ns);
CREATE TABLE cordons (
  cluster VARCHAR(255) NOT NULL,
  node VARCHAR(255) NOT NULL,
  drain INTEGER NOT NULL,
  reason TEXT NOT NULL,
  actor VARCHAR(255) NOT NULL,
  at_ns BIGINT NOT NULL,
  PRIMARY KEY (cluster, node)
);
CREATE TABLE deliveries (
  id VARCHAR(255) NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  receiver VARCHAR(255) NOT NULL,
  job_id BIGINT NOT NULL,
  job_name VARCHAR(255) NOT NULL,
  occasion VARCHAR(16) NOT NULL,
  body TEXT NOT NULL,
  created_ns BIGINT NOT NULL,
  next_ns BIGINT NOT NULL,
  tries INTEGER NOT NULL,
  state VARCHAR(16) NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX ix_deliveries_receiver ON deliveries (tenant, receiver, state);
CREATE TABLE evaluations (
  name VARCHAR(255) NOT NULL,
  rows TEXT NOT NULL,
  actor VARCHAR(255) NOT NULL,
  at_ns BIGINT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE events (
  at_ns BIGINT NOT NULL,
  kind VARCHAR(16) NOT NULL,
  reason TEXT NOT NULL,
  actor VARCHAR(255) NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  job_id BIGINT NOT NULL,
  state VARCHAR(16) NOT NULL,
  attempt INTEGER NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX ix_events_job ON events (job_id, id);
CREATE TABLE firing_alerts (
  name VARCHAR(63) NOT NULL,
  "of" VARCHAR(600) NOT NULL,
  since_ns BIGINT NOT NULL,
  PRIMARY KEY (name, "of")
);
CREATE TABLE idempotency_keys (
  tenant VARCHAR(255) NOT NULL,
  "key" VARCHAR(255) NOT NULL,
  digest VARCHAR(255) NOT NULL,
  job_id BIGINT NOT NULL,
  created_ns BIGINT NOT NULL,
  PRIMARY KEY (tenant, "key")
)
 WITHOUT ROWID
;
CREATE INDEX ix_idempotency_keys_created ON idempotency_keys (created_ns);
CREATE TABLE job_clusters (
  cluster VARCHAR(255) NOT NULL,
  job_id INTEGER NOT NULL,
  PRIMARY KEY (cluster, job_id)
)
 WITHOUT ROWID
;
CREATE INDEX ix_job_clusters_job ON job_clusters (job_id);
CREATE TABLE job_labels (
  name VARCHAR(255) NOT NULL,
  value VARCHAR(255) NOT NULL,
  job_id INTEGER NOT NULL,
  PRIMARY KEY (name, value, job_id)
)
 WITHOUT ROWID
;
CREATE INDEX ix_job_labels_job ON job_labels (job_id);
CREATE TABLE job_predecessors (
  predecessor BIGINT NOT NULL,
  job_id BIGINT NOT NULL,
  PRIMARY KEY (predecessor, job_id)
)
 WITHOUT ROWID
;
CREATE INDEX ix_job_predecessors_job ON job_predecessors (job_id);
CREATE TABLE job_specs (
  job_id INTEGER NOT NULL,
  spec TEXT NOT NULL,
  PRIMARY KEY (job_id)
);
CREATE TABLE job_uses (
  job_id INTEGER NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (job_id)
);
CREATE TABLE jobs (
  id INTEGER NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  queue VARCHAR(255) NOT NULL,
  name VARCHAR(255) NOT NULL,
  state VARCHAR(16) NOT NULL,
  submitted_by VARCHAR(255) NOT NULL,
  submitted_ns BIGINT NOT NULL,
  changed_ns BIGINT NOT NULL,
  started_ns BIGINT,
  ended_ns BIGINT,
  not_before_ns BIGINT,
  version BIGINT NOT NULL,
  attempt INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  clusters TEXT NOT NULL,
  nodes TEXT NOT NULL,
  reason TEXT NOT NULL,
  completed INTEGER NOT NULL,
  awaits TEXT,
  pair TEXT,
  array_id BIGINT NOT NULL,
  unstarted TEXT,
  expires_ns BIGINT,
  held_replicas INTEGER NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX ix_jobs_array ON jobs (array_id, state, id);
CREATE INDEX ix_jobs_ended ON jobs (array_id, state, ended_ns, id, started_ns) WHERE ended_ns IS NOT NULL;
CREATE INDEX ix_jobs_name ON jobs (array_id, name, id);
CREATE INDEX ix_jobs_queue ON jobs (array_id, queue, state, id);
CREATE INDEX ix_jobs_state ON jobs (state, id);
CREATE INDEX ix_jobs_submitted_by ON jobs (array_id, submitted_by, id);
CREATE INDEX ix_jobs_tenant ON jobs (array_id, tenant, state, id);
CREATE TABLE last_uses (
  name VARCHAR(255) NOT NULL,
  issuer VARCHAR(255) NOT NULL,
  token_id VARCHAR(16) NOT NULL,
  role VARCHAR(16) NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  address VARCHAR(255) NOT NULL,
  used_ns BIGINT NOT NULL,
  PRIMARY KEY (name, issuer, token_id)
);
CREATE TABLE lease (
  id INTEGER NOT NULL,
  epoch BIGINT NOT NULL,
  owner VARCHAR(255) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE link_samples (
  at_ns INTEGER NOT NULL,
  source VARCHAR(255) NOT NULL,
  target VARCHAR(255) NOT NULL,
  latency_ns BIGINT,
  jitter_ns BIGINT NOT NULL,
  loss_ppm INTEGER NOT NULL,
  bandwidth_mbps BIGINT NOT NULL,
  used_mbps BIGINT NOT NULL,
  path VARCHAR(255) NOT NULL,
  PRIMARY KEY (at_ns, source, target)
)
 WITHOUT ROWID
;
CREATE INDEX ix_link_samples_ends ON link_samples (source, target, at_ns);
CREATE TABLE network (
  text TEXT NOT NULL,
  version BIGINT NOT NULL,
  actor VARCHAR(255) NOT NULL,
  at_ns BIGINT NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE notifications (
  tenant VARCHAR(255) NOT NULL,
  name VARCHAR(255) NOT NULL,
  channel VARCHAR(16) NOT NULL,
  url TEXT NOT NULL,
  addresses TEXT NOT NULL,
  sealed TEXT NOT NULL,
  "on" TEXT NOT NULL,
  queue VARCHAR(255) NOT NULL,
  job VARCHAR(255) NOT NULL,
  wait_limit_s INTEGER NOT NULL,
  created_by VARCHAR(255) NOT NULL,
  changed_ns BIGINT NOT NULL,
  PRIMARY KEY (tenant, name)
);
CREATE TABLE notifier (
  event BIGINT NOT NULL,
  waits_ns BIGINT NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE paths (
  source VARCHAR(255) NOT NULL,
  target VARCHAR(255) NOT NULL,
  active VARCHAR(255) NOT NULL,
  active_ns BIGINT NOT NULL,
  applied VARCHAR(255) NOT NULL,
  applied_ns BIGINT NOT NULL,
  why TEXT NOT NULL,
  PRIMARY KEY (source, target)
);
CREATE TABLE pending_commands (
  job_id INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  cluster VARCHAR(255) NOT NULL,
  verb VARCHAR(16) NOT NULL,
  created_ns BIGINT NOT NULL,
  PRIMARY KEY (job_id, attempt, cluster, verb)
)
 WITHOUT ROWID
;
CREATE TABLE policies (
  name VARCHAR(255) NOT NULL,
  digest VARCHAR(255) NOT NULL,
  content TEXT NOT NULL,
  actor VARCHAR(255) NOT NULL,
  at_ns BIGINT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE pools (
  name VARCHAR(255) NOT NULL,
  clusters TEXT NOT NULL,
  description TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE queues (
  name VARCHAR(255) NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  pool VARCHAR(255) NOT NULL,
  policy VARCHAR(255) NOT NULL,
  shadow VARCHAR(255) NOT NULL,
  open INTEGER NOT NULL,
  description TEXT NOT NULL,
  allowed_taints TEXT NOT NULL,
  allowed_node_labels TEXT NOT NULL,
  parent VARCHAR(255) NOT NULL,
  weight INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  guarantee TEXT NOT NULL,
  "limit" TEXT NOT NULL,
  "order" VARCHAR(16) NOT NULL,
  backfill VARCHAR(16) NOT NULL,
  preemption VARCHAR(32) NOT NULL,
  reclaim VARCHAR(16) NOT NULL,
  preemptible INTEGER NOT NULL,
  min_runtime_s INTEGER NOT NULL,
  ageing_s INTEGER NOT NULL,
  borrowing_limit TEXT NOT NULL,
  lending_limit TEXT NOT NULL,
  policy_options TEXT NOT NULL,
  start_timeout_s INTEGER NOT NULL,
  grow_cooldown_s INTEGER NOT NULL,
  elastic VARCHAR(16) NOT NULL,
  preempts VARCHAR(16) NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE reservations (
  name VARCHAR(255) NOT NULL,
  starts_ns BIGINT NOT NULL,
  ends_ns BIGINT NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  queue VARCHAR(255) NOT NULL,
  gpus INTEGER NOT NULL,
  gpu_model TEXT NOT NULL,
  clusters TEXT NOT NULL,
  nodes TEXT NOT NULL,
  drain INTEGER NOT NULL,
  description TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE saved_filters (
  owner VARCHAR(255) NOT NULL,
  name VARCHAR(255) NOT NULL,
  "query" TEXT NOT NULL,
  changed_ns BIGINT NOT NULL,
  PRIMARY KEY (owner, name)
);
CREATE TABLE scale_windows (
  job_id INTEGER NOT NULL,
  replicas INTEGER NOT NULL,
  numbers TEXT NOT NULL,
  PRIMARY KEY (job_id)
);
CREATE TABLE shadows (
  at_ns BIGINT NOT NULL,
  queue VARCHAR(255) NOT NULL,
  live VARCHAR(255) NOT NULL,
  shadow VARCHAR(255) NOT NULL,
  jobs INTEGER NOT NULL,
  live_placed INTEGER NOT NULL,
  shadow_placed INTEGER NOT NULL,
  same_node INTEGER NOT NULL,
  live_fragmentation_milli INTEGER NOT NULL,
  shadow_fragmentation_milli INTEGER NOT NULL,
  answered INTEGER NOT NULL,
  fallbacks INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  live_wait_ms BIGINT NOT NULL,
  shadow_wait_ms BIGINT NOT NULL,
  id INTEGER NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX ix_shadows_at ON shadows (at_ns);
CREATE INDEX ix_shadows_queue ON shadows (queue, id);
CREATE TABLE tenants (
  name VARCHAR(255) NOT NULL,
  description TEXT NOT NULL,
  weight INTEGER NOT NULL,
  quotas TEXT NOT NULL,
  secrets TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE tokens (
  id VARCHAR(255) NOT NULL,
  name VARCHAR(255) NOT NULL,
  digest VARCHAR(255) NOT NULL,
  role VARCHAR(16) NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  created_ns BIGINT NOT NULL,
  created_by VARCHAR(255) NOT NULL,
  expires_ns BIGINT,
  revoked_ns BIGINT,
  gateway VARCHAR(255) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE usage_samples (
  step_s INTEGER NOT NULL,
  at_ns BIGINT NOT NULL,
  kind VARCHAR(16) NOT NULL,
  name VARCHAR(255) NOT NULL,
  tenant VARCHAR(255) NOT NULL,
  samples INTEGER NOT NULL,
  gpu_milli BIGINT NOT NULL,
  gpu_milli_used BIGINT NOT NULL,
  measured INTEGER NOT NULL,
  gpu_milli_measured BIGINT NOT NULL,
  running BIGINT NOT NULL,
  waiting BIGINT NOT NULL,
  longest_wait_s BIGINT NOT NULL,
  started BIGINT NOT NULL,
  waited_s BIGINT NOT NULL,
  PRIMARY KEY (step_s, at_ns, kind, name, tenant)
)
 WITHOUT ROWID
;
CREATE TABLE workdir_parts (
  tenant VARCHAR(255) NOT NULL,
  digest VARCHAR(255) NOT NULL,
  number INTEGER NOT NULL,
  content TEXT NOT NULL,
  at_ns BIGINT NOT NULL,
  PRIMARY KEY (tenant, digest, number)
);
CREATE TABLE workdirs (
  tenant VARCHAR(255) NOT NULL,
  digest VARCHAR(255) NOT NULL,
  size_bytes BIGINT NOT NULL,
  secret VARCHAR(255) NOT NULL,
  created_by VARCHAR(255) NOT NULL,
  created_ns BIGINT NOT NULL,
  used_ns BIGINT NOT NULL,
  bucket VARCHAR(255) NOT NULL,
  PRIMARY KEY (tenant, digest)
);
