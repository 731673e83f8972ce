CREATE TABLE acknowledgements (
    name character varying(63) NOT NULL COLLATE pg_catalog."C",
    of character varying(600) NOT NULL COLLATE pg_catalog."C",
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    at_ns bigint NOT NULL
);
CREATE TABLE agents (
    gateway character varying(255) NOT NULL COLLATE pg_catalog."C",
    started_ns bigint NOT NULL,
    number bigint NOT NULL,
    at_ns bigint NOT NULL,
    address character varying(255) NOT NULL COLLATE pg_catalog."C",
    reports bigint NOT NULL,
    rounds bigint NOT NULL,
    dropped bigint NOT NULL,
    discarded bigint NOT NULL
);
CREATE TABLE attempts (
    job_id bigint NOT NULL,
    number integer NOT NULL,
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    spec text NOT NULL,
    policy character varying(255) NOT NULL COLLATE pg_catalog."C",
    placements text NOT NULL,
    created_ns bigint NOT NULL,
    expires_ns bigint NOT NULL,
    why text NOT NULL,
    reason text NOT NULL,
    running_ns bigint,
    ended_ns bigint,
    amounts text NOT NULL
);
CREATE TABLE audit (
    at_ns bigint NOT NULL,
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    role character varying(255) NOT NULL COLLATE pg_catalog."C",
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    verb text NOT NULL,
    target text NOT NULL,
    status integer NOT NULL,
    address character varying(255) NOT NULL COLLATE pg_catalog."C",
    token_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    issuer character varying(255) NOT NULL COLLATE pg_catalog."C",
    requests integer NOT NULL,
    changes text,
    id bigint NOT NULL
);
CREATE TABLE cluster_facts (
    cluster character varying(255) NOT NULL COLLATE pg_catalog."C",
    facts text NOT NULL,
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    at_ns bigint NOT NULL
);
CREATE TABLE cluster_inventories (
    cluster character varying(255) NOT NULL COLLATE pg_catalog."C",
    inventory text NOT NULL
);
CREATE TABLE cluster_names (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    uid character varying(255) NOT NULL COLLATE pg_catalog."C",
    server character varying(255) NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE cluster_reports (
    cluster character varying(255) NOT NULL COLLATE pg_catalog."C",
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL,
    reported_ns bigint NOT NULL,
    at_ns bigint NOT NULL
);
CREATE TABLE cluster_samples (
    at_ns bigint NOT NULL,
    cluster character varying(255) NOT NULL COLLATE pg_catalog."C",
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    nodes integer NOT NULL,
    gpus integer NOT NULL,
    gpu_milli bigint NOT NULL,
    gpu_milli_used bigint NOT NULL,
    gpu_memory_mib bigint NOT NULL,
    gpu_memory_mib_used bigint NOT NULL,
    cpu_milli bigint NOT NULL,
    cpu_milli_used bigint NOT NULL,
    memory_mib bigint NOT NULL,
    memory_mib_used bigint NOT NULL,
    jobs integer NOT NULL
);
CREATE TABLE cordons (
    cluster character varying(255) NOT NULL COLLATE pg_catalog."C",
    node character varying(255) NOT NULL COLLATE pg_catalog."C",
    drain integer NOT NULL,
    reason text NOT NULL,
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    at_ns bigint NOT NULL
);
CREATE TABLE deliveries (
    id character varying(255) NOT NULL COLLATE pg_catalog."C",
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    receiver character varying(255) NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL,
    job_name character varying(255) NOT NULL COLLATE pg_catalog."C",
    occasion character varying(16) NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    created_ns bigint NOT NULL,
    next_ns bigint NOT NULL,
    tries integer NOT NULL,
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    error text NOT NULL
);
CREATE TABLE evaluations (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    rows text NOT NULL,
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    at_ns bigint NOT NULL
);
CREATE TABLE events (
    at_ns bigint NOT NULL,
    kind character varying(16) NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL,
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL,
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    id bigint NOT NULL
);
CREATE TABLE firing_alerts (
    name character varying(63) NOT NULL COLLATE pg_catalog."C",
    of character varying(600) NOT NULL COLLATE pg_catalog."C",
    since_ns bigint NOT NULL
);
CREATE TABLE idempotency_keys (
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    key character varying(255) NOT NULL COLLATE pg_catalog."C",
    digest character varying(255) NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL,
    created_ns bigint NOT NULL
);
CREATE TABLE job_clusters (
    cluster character varying(255) NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL
);
CREATE TABLE job_labels (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    value character varying(255) NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL
);
CREATE TABLE job_predecessors (
    predecessor bigint NOT NULL,
    job_id bigint NOT NULL
);
CREATE TABLE job_specs (
    job_id bigint NOT NULL,
    spec text NOT NULL
);
CREATE TABLE job_uses (
    job_id bigint NOT NULL,
    content text NOT NULL
);
CREATE TABLE jobs (
    id bigint NOT NULL,
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    queue character varying(255) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    state character varying(16) NOT NULL COLLATE pg_catalog."C",
    submitted_by character varying(255) NOT NULL COLLATE pg_catalog."C",
    submitted_ns bigint NOT NULL,
    changed_ns bigint NOT NULL,
    started_ns bigint,
    ended_ns bigint,
    not_before_ns bigint,
    version bigint NOT NULL,
    attempt integer NOT NULL,
    failures integer NOT NULL,
    clusters text NOT NULL,
    nodes text NOT NULL,
    reason text NOT NULL,
    completed integer NOT NULL,
    awaits text,
    pair text,
    array_id bigint NOT NULL,
    unstarted text,
    expires_ns bigint,
    held_replicas integer NOT NULL
);
CREATE TABLE last_uses (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    issuer character varying(255) NOT NULL COLLATE pg_catalog."C",
    token_id character varying(16) NOT NULL COLLATE pg_catalog."C",
    role character varying(16) NOT NULL COLLATE pg_catalog."C",
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    address character varying(255) NOT NULL COLLATE pg_catalog."C",
    used_ns bigint NOT NULL
);
CREATE TABLE lease (
    id bigint NOT NULL,
    epoch bigint NOT NULL,
    owner character varying(255) NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE link_samples (
    at_ns bigint NOT NULL,
    source character varying(255) NOT NULL COLLATE pg_catalog."C",
    target character varying(255) NOT NULL COLLATE pg_catalog."C",
    latency_ns bigint,
    jitter_ns bigint NOT NULL,
    loss_ppm integer NOT NULL,
    bandwidth_mbps bigint NOT NULL,
    used_mbps bigint NOT NULL,
    path character varying(255) NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE network (
    text text NOT NULL,
    version bigint NOT NULL,
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    at_ns bigint NOT NULL,
    id bigint NOT NULL
);
CREATE TABLE notifications (
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    channel character varying(16) NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL,
    addresses text NOT NULL,
    sealed text NOT NULL,
    "on" text NOT NULL,
    queue character varying(255) NOT NULL COLLATE pg_catalog."C",
    job character varying(255) NOT NULL COLLATE pg_catalog."C",
    wait_limit_s integer NOT NULL,
    created_by character varying(255) NOT NULL COLLATE pg_catalog."C",
    changed_ns bigint NOT NULL
);
CREATE TABLE notifier (
    event bigint NOT NULL,
    waits_ns bigint NOT NULL,
    id bigint NOT NULL
);
CREATE TABLE paths (
    source character varying(255) NOT NULL COLLATE pg_catalog."C",
    target character varying(255) NOT NULL COLLATE pg_catalog."C",
    active character varying(255) NOT NULL COLLATE pg_catalog."C",
    active_ns bigint NOT NULL,
    applied character varying(255) NOT NULL COLLATE pg_catalog."C",
    applied_ns bigint NOT NULL,
    why text NOT NULL
);
CREATE TABLE pending_commands (
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    cluster character varying(255) NOT NULL COLLATE pg_catalog."C",
    verb character varying(16) NOT NULL COLLATE pg_catalog."C",
    created_ns bigint NOT NULL
);
CREATE TABLE policies (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    digest character varying(255) NOT NULL COLLATE pg_catalog."C",
    content text NOT NULL,
    actor character varying(255) NOT NULL COLLATE pg_catalog."C",
    at_ns bigint NOT NULL
);
CREATE TABLE pools (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    clusters text NOT NULL,
    description text NOT NULL
);
CREATE TABLE queues (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    pool character varying(255) NOT NULL COLLATE pg_catalog."C",
    policy character varying(255) NOT NULL COLLATE pg_catalog."C",
    shadow character varying(255) NOT NULL COLLATE pg_catalog."C",
    open integer NOT NULL,
    description text NOT NULL,
    allowed_taints text NOT NULL,
    allowed_node_labels text NOT NULL,
    parent character varying(255) NOT NULL COLLATE pg_catalog."C",
    weight integer NOT NULL,
    priority integer NOT NULL,
    guarantee text NOT NULL,
    "limit" text NOT NULL,
    "order" character varying(16) NOT NULL COLLATE pg_catalog."C",
    backfill character varying(16) NOT NULL COLLATE pg_catalog."C",
    preemption character varying(32) NOT NULL COLLATE pg_catalog."C",
    reclaim character varying(16) NOT NULL COLLATE pg_catalog."C",
    preemptible integer NOT NULL,
    min_runtime_s integer NOT NULL,
    ageing_s integer NOT NULL,
    borrowing_limit text NOT NULL,
    lending_limit text NOT NULL,
    policy_options text NOT NULL,
    start_timeout_s integer NOT NULL,
    grow_cooldown_s integer NOT NULL,
    elastic character varying(16) NOT NULL COLLATE pg_catalog."C",
    preempts character varying(16) NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE reservations (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    starts_ns bigint NOT NULL,
    ends_ns bigint NOT NULL,
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    queue character varying(255) NOT NULL COLLATE pg_catalog."C",
    gpus integer NOT NULL,
    gpu_model text NOT NULL,
    clusters text NOT NULL,
    nodes text NOT NULL,
    drain integer NOT NULL,
    description text NOT NULL
);
CREATE TABLE saved_filters (
    owner character varying(255) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    query text NOT NULL,
    changed_ns bigint NOT NULL
);
CREATE TABLE scale_windows (
    job_id bigint NOT NULL,
    replicas integer NOT NULL,
    numbers text NOT NULL
);
CREATE TABLE shadows (
    at_ns bigint NOT NULL,
    queue character varying(255) NOT NULL COLLATE pg_catalog."C",
    live character varying(255) NOT NULL COLLATE pg_catalog."C",
    shadow character varying(255) NOT NULL COLLATE pg_catalog."C",
    jobs integer NOT NULL,
    live_placed integer NOT NULL,
    shadow_placed integer NOT NULL,
    same_node integer NOT NULL,
    live_fragmentation_milli integer NOT NULL,
    shadow_fragmentation_milli integer NOT NULL,
    answered integer NOT NULL,
    fallbacks integer NOT NULL,
    tries integer NOT NULL,
    live_wait_ms bigint NOT NULL,
    shadow_wait_ms bigint NOT NULL,
    id bigint NOT NULL
);
CREATE TABLE tenants (
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    weight integer NOT NULL,
    quotas text NOT NULL,
    secrets text NOT NULL
);
CREATE TABLE tokens (
    id character varying(255) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    digest character varying(255) NOT NULL COLLATE pg_catalog."C",
    role character varying(16) NOT NULL COLLATE pg_catalog."C",
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    created_ns bigint NOT NULL,
    created_by character varying(255) NOT NULL COLLATE pg_catalog."C",
    expires_ns bigint,
    revoked_ns bigint,
    gateway character varying(255) NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE usage_samples (
    step_s integer NOT NULL,
    at_ns bigint NOT NULL,
    kind character varying(16) NOT NULL COLLATE pg_catalog."C",
    name character varying(255) NOT NULL COLLATE pg_catalog."C",
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    samples integer NOT NULL,
    gpu_milli bigint NOT NULL,
    gpu_milli_used bigint NOT NULL,
    measured integer NOT NULL,
    gpu_milli_measured bigint NOT NULL,
    running bigint NOT NULL,
    waiting bigint NOT NULL,
    longest_wait_s bigint NOT NULL,
    started bigint NOT NULL,
    waited_s bigint NOT NULL
);
CREATE TABLE workdir_parts (
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    digest character varying(255) NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    content text NOT NULL,
    at_ns bigint NOT NULL
);
CREATE TABLE workdirs (
    tenant character varying(255) NOT NULL COLLATE pg_catalog."C",
    digest character varying(255) NOT NULL COLLATE pg_catalog."C",
    size_bytes bigint NOT NULL,
    secret character varying(255) NOT NULL COLLATE pg_catalog."C",
    created_by character varying(255) NOT NULL COLLATE pg_catalog."C",
    created_ns bigint NOT NULL,
    used_ns bigint NOT NULL,
    bucket character varying(255) NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE ONLY acknowledgements
    ADD CONSTRAINT acknowledgements_pkey PRIMARY KEY (name, of);
ALTER TABLE ONLY agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (gateway);
ALTER TABLE ONLY attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (job_id, number);
ALTER TABLE ONLY audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY cluster_facts
    ADD CONSTRAINT cluster_facts_pkey PRIMARY KEY (cluster);
ALTER TABLE ONLY cluster_inventories
    ADD CONSTRAINT cluster_inventories_pkey PRIMARY KEY (cluster);
ALTER TABLE ONLY cluster_names
    ADD CONSTRAINT cluster_names_pkey PRIMARY KEY (name);
ALTER TABLE ONLY cluster_reports
    ADD CONSTRAINT cluster_reports_pkey PRIMARY KEY (cluster);
ALTER TABLE ONLY cluster_samples
    ADD CONSTRAINT cluster_samples_pkey PRIMARY KEY (at_ns, cluster);
ALTER TABLE ONLY cordons
    ADD CONSTRAINT cordons_pkey PRIMARY KEY (cluster, node);
ALTER TABLE ONLY deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY evaluations
    ADD CONSTRAINT evaluations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY firing_alerts
    ADD CONSTRAINT firing_alerts_pkey PRIMARY KEY (name, of);
ALTER TABLE ONLY idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, key);
ALTER TABLE ONLY job_clusters
    ADD CONSTRAINT job_clusters_pkey PRIMARY KEY (cluster, job_id);
ALTER TABLE ONLY job_labels
    ADD CONSTRAINT job_labels_pkey PRIMARY KEY (name, value, job_id);
ALTER TABLE ONLY job_predecessors
    ADD CONSTRAINT job_predecessors_pkey PRIMARY KEY (predecessor, job_id);
ALTER TABLE ONLY job_specs
    ADD CONSTRAINT job_specs_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY job_uses
    ADD CONSTRAINT job_uses_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY last_uses
    ADD CONSTRAINT last_uses_pkey PRIMARY KEY (name, issuer, token_id);
ALTER TABLE ONLY lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (id);
ALTER TABLE ONLY link_samples
    ADD CONSTRAINT link_samples_pkey PRIMARY KEY (at_ns, source, target);
ALTER TABLE ONLY network
    ADD CONSTRAINT network_pkey PRIMARY KEY (id);
ALTER TABLE ONLY notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (tenant, name);
ALTER TABLE ONLY notifier
    ADD CONSTRAINT notifier_pkey PRIMARY KEY (id);
ALTER TABLE ONLY paths
    ADD CONSTRAINT paths_pkey PRIMARY KEY (source, target);
ALTER TABLE ONLY pending_commands
    ADD CONSTRAINT pending_commands_pkey PRIMARY KEY (job_id, attempt, cluster, verb);
ALTER TABLE ONLY policies
    ADD CONSTRAINT policies_pkey PRIMARY KEY (name);
ALTER TABLE ONLY pools
    ADD CONSTRAINT pools_pkey PRIMARY KEY (name);
ALTER TABLE ONLY queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);
ALTER TABLE ONLY reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY saved_filters
    ADD CONSTRAINT saved_filters_pkey PRIMARY KEY (owner, name);
ALTER TABLE ONLY scale_windows
    ADD CONSTRAINT scale_windows_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY shadows
    ADD CONSTRAINT shadows_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (name);
ALTER TABLE ONLY tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY usage_samples
    ADD CONSTRAINT usage_samples_pkey PRIMARY KEY (step_s, at_ns, kind, name, tenant);
ALTER TABLE ONLY workdir_parts
    ADD CONSTRAINT workdir_parts_pkey PRIMARY KEY (tenant, digest, number);
ALTER TABLE ONLY workdirs
    ADD CONSTRAINT workdirs_pkey PRIMARY KEY (tenant, digest);
CREATE INDEX ix_attempts_ended ON attempts USING btree (ended_ns, job_id, number);
CREATE INDEX ix_attempts_state ON attempts USING btree (state, job_id, number);
CREATE INDEX ix_audit_at ON audit USING btree (at_ns);
CREATE INDEX ix_cluster_samples_cluster ON cluster_samples USING btree (cluster, at_ns);
CREATE INDEX ix_deliveries_receiver ON deliveries USING btree (tenant, receiver, state);
CREATE INDEX ix_events_job ON events USING btree (job_id, id);
CREATE INDEX ix_idempotency_keys_created ON idempotency_keys USING btree (created_ns);
CREATE INDEX ix_job_clusters_job ON job_clusters USING btree (job_id);
CREATE INDEX ix_job_labels_job ON job_labels USING btree (job_id);
CREATE INDEX ix_job_predecessors_job ON job_predecessors USING btree (job_id);
CREATE INDEX ix_jobs_array ON jobs USING btree (array_id, state, id);
CREATE INDEX ix_jobs_ended ON jobs USING btree (array_id, state, ended_ns, id, started_ns) WHERE (ended_ns IS NOT NULL);
CREATE INDEX ix_jobs_name ON jobs USING btree (array_id, name, id);
CREATE INDEX ix_jobs_queue ON jobs USING btree (array_id, queue, state, id);
CREATE INDEX ix_jobs_state ON jobs USING btree (state, id);
CREATE INDEX ix_jobs_submitted_by ON jobs USING btree (array_id, submitted_by, id);
CREATE INDEX ix_jobs_tenant ON jobs USING btree (array_id, tenant, state, id);
CREATE INDEX ix_link_samples_ends ON link_samples USING btree (source, target, at_ns);
CREATE INDEX ix_shadows_at ON shadows USING btree (at_ns);
CREATE INDEX ix_shadows_queue ON shadows USING btree (queue, id);
