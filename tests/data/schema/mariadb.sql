CREATE TABLE `acknowledgements` (
  `name` varchar(63) NOT NULL,
  `of` varchar(600) NOT NULL,
  `actor` varchar(255) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`name`,`of`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `agents` (
  `gateway` varchar(255) NOT NULL,
  `started_ns` bigint(20) NOT NULL,
  `number` bigint(20) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  `address` varchar(255) NOT NULL,
  `reports` bigint(20) NOT NULL,
  `rounds` bigint(20) NOT NULL,
  `dropped` bigint(20) NOT NULL,
  `discarded` bigint(20) NOT NULL,
  PRIMARY KEY (`gateway`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `attempts` (
  `job_id` bigint(20) NOT NULL,
  `number` int(11) NOT NULL,
  `state` varchar(16) NOT NULL,
  `spec` longtext NOT NULL,
  `policy` varchar(255) NOT NULL,
  `placements` longtext NOT NULL,
  `created_ns` bigint(20) NOT NULL,
  `expires_ns` bigint(20) NOT NULL,
  `why` longtext NOT NULL,
  `reason` longtext NOT NULL,
  `running_ns` bigint(20) DEFAULT NULL,
  `ended_ns` bigint(20) DEFAULT NULL,
  `amounts` longtext NOT NULL,
  PRIMARY KEY (`job_id`,`number`),
  KEY `ix_attempts_ended` (`ended_ns`,`job_id`,`number`),
  KEY `ix_attempts_state` (`state`,`job_id`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `audit` (
  `at_ns` bigint(20) NOT NULL,
  `actor` varchar(255) NOT NULL,
  `role` varchar(255) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `verb` longtext NOT NULL,
  `target` longtext NOT NULL,
  `status` int(11) NOT NULL,
  `address` varchar(255) NOT NULL,
  `token_id` varchar(255) NOT NULL,
  `issuer` varchar(255) NOT NULL,
  `requests` int(11) NOT NULL,
  `changes` longtext DEFAULT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_audit_at` (`at_ns`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `cluster_facts` (
  `cluster` varchar(255) NOT NULL,
  `facts` longtext NOT NULL,
  `actor` varchar(255) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`cluster`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `cluster_inventories` (
  `cluster` varchar(255) NOT NULL,
  `inventory` longtext NOT NULL,
  PRIMARY KEY (`cluster`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `cluster_names` (
  `name` varchar(255) NOT NULL,
  `uid` varchar(255) NOT NULL,
  `server` varchar(255) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `cluster_reports` (
  `cluster` varchar(255) NOT NULL,
  `state` varchar(16) NOT NULL,
  `reason` longtext NOT NULL,
  `reported_ns` bigint(20) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`cluster`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `cluster_samples` (
  `at_ns` bigint(20) NOT NULL,
  `cluster` varchar(255) NOT NULL,
  `state` varchar(16) NOT NULL,
  `nodes` int(11) NOT NULL,
  `gpus` int(11) NOT NULL,
  `gpu_milli` bigint(20) NOT NULL,
  `gpu_milli_used` bigint(20) NOT NULL,
  `gpu_memory_mib` bigint(20) NOT NULL,
  `gpu_memory_mib_used` bigint(20) NOT NULL,
  `cpu_milli` bigint(20) NOT NULL,
  `cpu_milli_used` bigint(20) NOT NULL,
  `memory_mib` bigint(20) NOT NULL,
  `memory_mib_used` bigint(20) NOT NULL,
  `jobs` int(11) NOT NULL,
  PRIMARY KEY (`at_ns`,`cluster`),
  KEY `ix_cluster_samples_cluster` (`cluster`,`at_ns`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `cordons` (
  `cluster` varchar(255) NOT NULL,
  `node` varchar(255) NOT NULL,
  `drain` int(11) NOT NULL,
  `reason` longtext NOT NULL,
  `actor` varchar(255) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`cluster`,`node`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `deliveries` (
  `id` varchar(255) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `receiver` varchar(255) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  `job_name` varchar(255) NOT NULL,
  `occasion` varchar(16) NOT NULL,
  `body` longtext NOT NULL,
  `created_ns` bigint(20) NOT NULL,
  `next_ns` bigint(20) NOT NULL,
  `tries` int(11) NOT NULL,
  `state` varchar(16) NOT NULL,
  `error` longtext NOT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_deliveries_receiver` (`tenant`,`receiver`,`state`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `evaluations` (
  `name` varchar(255) NOT NULL,
  `rows` longtext NOT NULL,
  `actor` varchar(255) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `events` (
  `at_ns` bigint(20) NOT NULL,
  `kind` varchar(16) NOT NULL,
  `reason` longtext NOT NULL,
  `actor` varchar(255) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  `state` varchar(16) NOT NULL,
  `attempt` int(11) NOT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_events_job` (`job_id`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `firing_alerts` (
  `name` varchar(63) NOT NULL,
  `of` varchar(600) NOT NULL,
  `since_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`name`,`of`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `idempotency_keys` (
  `tenant` varchar(255) NOT NULL,
  `key` varchar(255) NOT NULL,
  `digest` varchar(255) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  `created_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`tenant`,`key`),
  KEY `ix_idempotency_keys_created` (`created_ns`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `job_clusters` (
  `cluster` varchar(255) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  PRIMARY KEY (`cluster`,`job_id`),
  KEY `ix_job_clusters_job` (`job_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `job_labels` (
  `name` varchar(255) NOT NULL,
  `value` varchar(255) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  PRIMARY KEY (`name`,`value`,`job_id`),
  KEY `ix_job_labels_job` (`job_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `job_predecessors` (
  `predecessor` bigint(20) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  PRIMARY KEY (`predecessor`,`job_id`),
  KEY `ix_job_predecessors_job` (`job_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `job_specs` (
  `job_id` bigint(20) NOT NULL,
  `spec` longtext NOT NULL,
  PRIMARY KEY (`job_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `job_uses` (
  `job_id` bigint(20) NOT NULL,
  `content` longtext NOT NULL,
  PRIMARY KEY (`job_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `jobs` (
  `id` bigint(20) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `queue` varchar(255) NOT NULL,
  `name` varchar(255) NOT NULL,
  `state` varchar(16) NOT NULL,
  `submitted_by` varchar(255) NOT NULL,
  `submitted_ns` bigint(20) NOT NULL,
  `changed_ns` bigint(20) NOT NULL,
  `started_ns` bigint(20) DEFAULT NULL,
  `ended_ns` bigint(20) DEFAULT NULL,
  `not_before_ns` bigint(20) DEFAULT NULL,
  `version` bigint(20) NOT NULL,
  `attempt` int(11) NOT NULL,
  `failures` int(11) NOT NULL,
  `clusters` longtext NOT NULL,
  `nodes` longtext NOT NULL,
  `reason` longtext NOT NULL,
  `completed` int(11) NOT NULL,
  `awaits` longtext DEFAULT NULL,
  `pair` longtext DEFAULT NULL,
  `array_id` bigint(20) NOT NULL,
  `unstarted` longtext DEFAULT NULL,
  `expires_ns` bigint(20) DEFAULT NULL,
  `held_replicas` int(11) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_jobs_submitted_by` (`array_id`,`submitted_by`,`id`),
  KEY `ix_jobs_ended` (`array_id`,`state`,`ended_ns`,`id`,`started_ns`),
  KEY `ix_jobs_tenant` (`array_id`,`tenant`,`state`,`id`),
  KEY `ix_jobs_state` (`state`,`id`),
  KEY `ix_jobs_queue` (`array_id`,`queue`,`state`,`id`),
  KEY `ix_jobs_array` (`array_id`,`state`,`id`),
  KEY `ix_jobs_name` (`array_id`,`name`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `last_uses` (
  `name` varchar(255) NOT NULL,
  `issuer` varchar(255) NOT NULL,
  `token_id` varchar(16) NOT NULL,
  `role` varchar(16) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `address` varchar(255) NOT NULL,
  `used_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`name`,`issuer`,`token_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `lease` (
  `id` bigint(20) NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `owner` varchar(255) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `link_samples` (
  `at_ns` bigint(20) NOT NULL,
  `source` varchar(255) NOT NULL,
  `target` varchar(255) NOT NULL,
  `latency_ns` bigint(20) DEFAULT NULL,
  `jitter_ns` bigint(20) NOT NULL,
  `loss_ppm` int(11) NOT NULL,
  `bandwidth_mbps` bigint(20) NOT NULL,
  `used_mbps` bigint(20) NOT NULL,
  `path` varchar(255) NOT NULL,
  PRIMARY KEY (`at_ns`,`source`,`target`),
  KEY `ix_link_samples_ends` (`source`,`target`,`at_ns`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `network` (
  `text` longtext NOT NULL,
  `version` bigint(20) NOT NULL,
  `actor` varchar(255) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `notifications` (
  `tenant` varchar(255) NOT NULL,
  `name` varchar(255) NOT NULL,
  `channel` varchar(16) NOT NULL,
  `url` longtext NOT NULL,
  `addresses` longtext NOT NULL,
  `sealed` longtext NOT NULL,
  `on` longtext NOT NULL,
  `queue` varchar(255) NOT NULL,
  `job` varchar(255) NOT NULL,
  `wait_limit_s` int(11) NOT NULL,
  `created_by` varchar(255) NOT NULL,
  `changed_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`tenant`,`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `notifier` (
  `event` bigint(20) NOT NULL,
  `waits_ns` bigint(20) NOT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `paths` (
  `source` varchar(255) NOT NULL,
  `target` varchar(255) NOT NULL,
  `active` varchar(255) NOT NULL,
  `active_ns` bigint(20) NOT NULL,
  `applied` varchar(255) NOT NULL,
  `applied_ns` bigint(20) NOT NULL,
  `why` longtext NOT NULL,
  PRIMARY KEY (`source`,`target`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `pending_commands` (
  `job_id` bigint(20) NOT NULL,
  `attempt` int(11) NOT NULL,
  `cluster` varchar(255) NOT NULL,
  `verb` varchar(16) NOT NULL,
  `created_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`job_id`,`attempt`,`cluster`,`verb`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `policies` (
  `name` varchar(255) NOT NULL,
  `digest` varchar(255) NOT NULL,
  `content` longtext NOT NULL,
  `actor` varchar(255) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `pools` (
  `name` varchar(255) NOT NULL,
  `clusters` longtext NOT NULL,
  `description` longtext NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `queues` (
  `name` varchar(255) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `pool` varchar(255) NOT NULL,
  `policy` varchar(255) NOT NULL,
  `shadow` varchar(255) NOT NULL,
  `open` int(11) NOT NULL,
  `description` longtext NOT NULL,
  `allowed_taints` longtext NOT NULL,
  `allowed_node_labels` longtext NOT NULL,
  `parent` varchar(255) NOT NULL,
  `weight` int(11) NOT NULL,
  `priority` int(11) NOT NULL,
  `guarantee` longtext NOT NULL,
  `limit` longtext NOT NULL,
  `order` varchar(16) NOT NULL,
  `backfill` varchar(16) NOT NULL,
  `preemption` varchar(32) NOT NULL,
  `reclaim` varchar(16) NOT NULL,
  `preemptible` int(11) NOT NULL,
  `min_runtime_s` int(11) NOT NULL,
  `ageing_s` int(11) NOT NULL,
  `borrowing_limit` longtext NOT NULL,
  `lending_limit` longtext NOT NULL,
  `policy_options` longtext NOT NULL,
  `start_timeout_s` int(11) NOT NULL,
  `grow_cooldown_s` int(11) NOT NULL,
  `elastic` varchar(16) NOT NULL,
  `preempts` varchar(16) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `reservations` (
  `name` varchar(255) NOT NULL,
  `starts_ns` bigint(20) NOT NULL,
  `ends_ns` bigint(20) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `queue` varchar(255) NOT NULL,
  `gpus` int(11) NOT NULL,
  `gpu_model` longtext NOT NULL,
  `clusters` longtext NOT NULL,
  `nodes` longtext NOT NULL,
  `drain` int(11) NOT NULL,
  `description` longtext NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `saved_filters` (
  `owner` varchar(255) NOT NULL,
  `name` varchar(255) NOT NULL,
  `query` longtext NOT NULL,
  `changed_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`owner`,`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `scale_windows` (
  `job_id` bigint(20) NOT NULL,
  `replicas` int(11) NOT NULL,
  `numbers` longtext NOT NULL,
  PRIMARY KEY (`job_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `shadows` (
  `at_ns` bigint(20) NOT NULL,
  `queue` varchar(255) NOT NULL,
  `live` varchar(255) NOT NULL,
  `shadow` varchar(255) NOT NULL,
  `jobs` int(11) NOT NULL,
  `live_placed` int(11) NOT NULL,
  `shadow_placed` int(11) NOT NULL,
  `same_node` int(11) NOT NULL,
  `live_fragmentation_milli` int(11) NOT NULL,
  `shadow_fragmentation_milli` int(11) NOT NULL,
  `answered` int(11) NOT NULL,
  `fallbacks` int(11) NOT NULL,
  `tries` int(11) NOT NULL,
  `live_wait_ms` bigint(20) NOT NULL,
  `shadow_wait_ms` bigint(20) NOT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_shadows_at` (`at_ns`),
  KEY `ix_shadows_queue` (`queue`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `tenants` (
  `name` varchar(255) NOT NULL,
  `description` longtext NOT NULL,
  `weight` int(11) NOT NULL,
  `quotas` longtext NOT NULL,
  `secrets` longtext NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `tokens` (
  `id` varchar(255) NOT NULL,
  `name` varchar(255) NOT NULL,
  `digest` varchar(255) NOT NULL,
  `role` varchar(16) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `created_ns` bigint(20) NOT NULL,
  `created_by` varchar(255) NOT NULL,
  `expires_ns` bigint(20) DEFAULT NULL,
  `revoked_ns` bigint(20) DEFAULT NULL,
  `gateway` varchar(255) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `usage_samples` (
  `step_s` int(11) NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  `kind` varchar(16) NOT NULL,
  `name` varchar(255) NOT NULL,
  `tenant` varchar(255) NOT NULL,
  `samples` int(11) NOT NULL,
  `gpu_milli` bigint(20) NOT NULL,
  `gpu_milli_used` bigint(20) NOT NULL,
  `measured` int(11) NOT NULL,
  `gpu_milli_measured` bigint(20) NOT NULL,
  `running` bigint(20) NOT NULL,
  `waiting` bigint(20) NOT NULL,
  `longest_wait_s` bigint(20) NOT NULL,
  `started` bigint(20) NOT NULL,
  `waited_s` bigint(20) NOT NULL,
  PRIMARY KEY (`step_s`,`at_ns`,`kind`,`name`,`tenant`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `workdir_parts` (
  `tenant` varchar(255) NOT NULL,
  `digest` varchar(255) NOT NULL,
  `number` int(11) NOT NULL,
  `content` longtext NOT NULL,
  `at_ns` bigint(20) NOT NULL,
  PRIMARY KEY (`tenant`,`digest`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE TABLE `workdirs` (
  `tenant` varchar(255) NOT NULL,
  `digest` varchar(255) NOT NULL,
  `size_bytes` bigint(20) NOT NULL,
  `secret` varchar(255) NOT NULL,
  `created_by` varchar(255) NOT NULL,
  `created_ns` bigint(20) NOT NULL,
  `used_ns` bigint(20) NOT NULL,
  `bucket` varchar(255) NOT NULL,
  PRIMARY KEY (`tenant`,`digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
