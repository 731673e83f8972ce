"""Catalogue of reasons: English texts by code, with named parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from seaway.domain.error_texts import ERRORS

Param: TypeAlias = "str | int | float | tuple[str, ...]"
"""Value in a reason. A text can be a `Reason` itself."""

Params = Mapping[str, Param]
"""Parameters of a reason. Times are RFC 3339 in UTC, and durations seconds. The values of `state` are states of jobs or
clusters, those of `kind` and `form` kinds of objects and of values, and those of `role` and `own` roles. Where the text
has no place for them, `why` follows after a colon, and the reasons in `also` after semicolons. `job_id` beside `job` is
the ID of a job that may be given by its name; pages link to it.
"""

Marks: TypeAlias = tuple[str, str, str]

TEXTS: Mapping[str, str] = {
    "reserved_for_job": "reserved for job {job} (starts at about {starts_at})",
    "reserved_for_job_until": "reserved for job {job} until {until} (its start is unknown)",
    "reserved_for_other_tenant": "reserved for a job of another tenant (starts at about {starts_at})",
    "reserved_for_other_tenant_until": "reserved for a job of another tenant until {until} (its start is unknown)",
    "reserved_in_advance": "reserved for others from {begin} to {end}",
    "reserved_for_maintenance": "reserved for maintenance {name} from {begin} to {end}",
    "tpu_slice": "TPU slice that needs a gang with one replica per node: {slices}",
    "is_cordoned": "cordoned",
    "under_maintenance": "under maintenance {name} until {until}",
    "cluster_lost": "in a cluster that does not answer",
    "model_limit": "GPU model without room under the limit of {holders}: {models}",
    # Steps of jobs.
    "quoted": "{text}",
    "accepted": "accepted",
    "added_to_queue": "added to its queue",
    "no_room": "no node has room for it now",
    "delays_earlier_jobs": "its start now could delay the planned start of an earlier job",
    "placed_on": "placed on {where} by {policy}",
    "placed_instead": "placed on {where} by {policy} in place of {other}",
    "nodes_of": "{count:node} of {clusters}",
    "more_nodes": "{nodes} and {count:more node}",
    "more_follow": "up to {count:more replica} follow while it runs",
    "grows_after": "up to {count:more replica} follow after its cool-down, which ends at {ends_at}",
    "grows_with_room": "up to {count:more replica} follow once there is room that no job waits for",
    "one_waits_for_room": "another replica waits for room",
    "others_wait_for_room": "{count} other replicas wait for room",
    "one_waits": "another replica waits until these have completed",
    "others_wait": "{count} other replicas wait until these have completed",
    "accepted_by": "accepted by {clusters}",
    "runs": "runs on {where}",
    "some_completed": "{done} of {replicas} replicas completed",
    "rest_waits": "the others wait",
    "completed": "all replicas completed",
    "replica_failed": "a replica failed",
    "attempt_follows": "attempt {number} follows in {pause} s",
    "attempt_of_follows": "attempt {number} of {most} follows in {pause} s",
    "next_attempt": "next attempt in {pause} s",
    "refused": "{by} refused it",
    "others_continue": "the other replicas continue",
    "workloads_gone": "all workloads in {cluster} are gone",
    "replica_gone": "{count} of the {placed} replicas in {cluster} is gone",
    "replicas_gone": "{count} of the {placed} replicas in {cluster} are gone",
    "gone_again": "{what} for the {times}th time",
    "gone_others_completed": "{what}, and others have completed",
    "completed_run_again": "the pod of a completed replica was created again, after its devices were released",
    "gone_or_late": "{what} or late",
    "both": "{one} and {other}",
    "re_created": "it is re-created",
    "sent_again": "the command is sent again",
    "ended_before": "the workload in {cluster} ended before they were added",
    "not_confirmed": "{clusters} did not confirm it within {waited} s",
    "no_address": "{cluster} gave no address of rank 0 for {clusters} within {waited} s",
    "not_started": "its replicas did not all run within {limit_s}, so its devices are released",
    "in_cluster": "{cluster}: {text}",
    "late": "late: {clusters}",
    "stays": "it stays",
    "stays_after_repairs": "it stays, after several repairs",
    "restored": "it is restored",
    "port": "port {port} answers at {address}",
    "ports": "{ports}",
    "rank_0": "rank 0 answers the other clusters at {address}",
    "time_limit": "it ran for longer than its limit of {limit} s",
    "lease_renewed": "the lease is renewed by {who} until {ends_at}",
    "lease_ends": "its lease ends at {ends_at}, and then it is stopped: seaway renew {job}",
    "lease_ended": "its lease ended at {ends_at}",
    # Requests of users.
    "changed": "changed by {who}",
    "changed_fields": "changed by {who}: {changes}",
    "cancelled": "cancelled by {who}",
    "suspended": "suspended by {who}",
    "moved_by": "moved to {where} by {who}",
    "stopped_by": "stopped by {who}, so that other jobs can move",
    "deleted": "deleted by {who}",
    "resumed": "resumed by {who}",
    "retried": "retried by {who}",
    "retried_with": "retried with its predecessor {job}",
    "requested": "requested by {who}",
    # Clusters and nodes of jobs.
    "elsewhere": "it is queued for another place",
    "drained": "{place} is drained",
    "silent": "{cluster} does not answer",
    "left_fleet": "{cluster} is not in the fleet any more",
    "cluster_removed": "{cluster} was removed",
    "network_violates": "its network violates its bounds: {clauses}",
    "network_meets": "its network meets its bounds again",
    "figures_of": "{source} to {target}: {figures}",
    "not_measured": "not measured",
    "no_answer": "nothing answers",
    "latency_over": "latency {value}, bound {bound}",
    "jitter_over": "jitter {value}, bound {bound}",
    "loss_over": "loss {value}, bound {bound}",
    "bandwidth_unknown": "bandwidth not known, bound {bound}",
    "bandwidth_below": "{free} free, bound {bound}",
    "overbooked": "{more} more is reserved than it has",
    "bandwidth_of_waiting": "{rate} of that is reserved for waiting jobs",
    # Resizes.
    "grows": "grows from {was} to {now:replica}",
    "room_on": "there is room on {where}",
    "wanted_and_room": "{why}, and there is room on {where}",
    "shrinks": "shrinks from {was} to {now:replica}",
    "as_set": "its number of replicas was set",
    "shrinks_for": "shrinks from {was} to {now:replica} for {winner}",
    "shrinks_to_minimum_for": "shrinks from {was} to {now:replica}, its minimum, for {winner}",
    "wants": "wants {now:replica} instead of {was}",
    "to_zero": "scaled to zero",
    "from_zero": "scaled from zero",
    "not_reduced": "the number of replicas cannot be reduced: {problems}",
    "window_begins": "its time window begins at {opens} ({timezone})",
    "window_ended": "its time window ended at {closes} ({timezone})",
    "metric_utilization": "{value:.0%} of its GPU cores are used, the target is {target:.0%}",
    "metric_latency": "requests take {value:.3g} s, the target is {target:g} s",
    "metric_requests": "there are {value:.4g} requests a second, the target is {target:g} for each replica",
    "metric_queue_depth": "{value:.0f} jobs wait in its queue, the target is {target:g}",
    "metric_query": "its query has the value {value:.4g}, the target is {target:g} for each replica",
    "no_replica": "it has no replica",
    "no_exporter": "no exporter reports the use of its GPUs",
    "not_read": "{metric} was not read yet",
    # Waiting jobs.
    "limit_full": "{holder} holds {held} of its limit of {limit}",
    "limit_full_claimed": (
        "{holder} holds {held} of its limit of {limit}, with {reserved} reserved for jobs that displaced others"
    ),
    "limit_small": "{holder} holds {held} of its limit of {limit}, and this job requests {requested}",
    "limit_small_claimed": (
        "{holder} holds {held} of its limit of {limit}, with {reserved} reserved for jobs that displaced others, and"
        " this job requests {requested}"
    ),
    "amount_gpus": "{amount} gpus",
    "amount_of_model": "{amount} gpus/{model}",
    "amount_gpu_cores": "{amount} gpu_cores",
    "amount_gpu_memory": "{amount} gpu_memory",
    "amount_cpu": "{amount} cpu",
    "amount_memory": "{amount} memory",
    "amount_jobs": "{amount} jobs",
    "one_of_gpus": "1 gpu",
    "one_of_jobs": "1 job",
    "queue": "queue {queue!r}",
    "tenant_in_pool": "tenant {tenant!r} in pool {pool!r}",
    "user_in_pool": "user {user!r} of tenant {tenant!r} in pool {pool!r}",
    "pool_beside_queues": "pool {pool!r}, beside what queues keep for themselves,",
    "other_capacity": "other capacity is {what}",
    "policy_not_ready": "the policy {policy!r} of its queue is being compiled",
    "no_queue": "its queue {queue!r} does not exist any more; move the job to another queue, or create the queue again",
    "no_pool": "the pool {pool!r} of its queue does not exist any more; create it again",
    "array_order": "other tasks of its array go first",
    "array_limit": "its array has at most {limit:task} at once",
    "paused": "it is tried again after a pause",
    "active_copy_first": "the active copy of the service is placed first",
    "standby_first": "its standby becomes active first",
    "holds_lost": "it still holds {count:GPU} in {cluster}, which does not answer, and GPU-hours count on",
    "being_removed": "attempt {number} is being removed from {cluster}",
    "short_in_one_cluster": "{needed} replicas are needed in one cluster, and there is room for {count} now",
    "no_free_slice": "all {nodes} nodes of one TPU slice are needed, and no such slice is free now",
    "short_together": "{needed} replicas are needed together, and there is room for {count} now",
    # Advice.
    "raise_limit": "raise the limit of {holder} from {limit} to {most}",
    "queue_has_room": "move it to queue {queue!r}, where it would start now on {place}",
    "held_by_user": "user {user!r} of tenant {tenant!r} holds {amount} in queue {queue!r}",
    "held_in_queue": "other tenants hold {amount} in queue {queue!r}",
    "held_by_others": "others hold {amount}",
    # Placements.
    "chose": "{policy} chose {where}",
    "chose_instead": "{policy} chose {where} in place of {other}",
    "first_replica": "for its first replica, {what}",
    "better_elsewhere": "{place} has a better score, but {cluster} has room for {count} of {replicas} replicas",
    "decided": "{term} decided: {score} against {lower} of {place}, the next best",
    "decided_in_total": (
        "{term} decided: {score} against {lower} of {place}, the next best (in total {total} against {less})"
    ),
    "data_closer": "its data is closer than to {place}, the next best",
    "gpus_closer": "its GPUs are connected better than those of {place}, the next best",
    "equal_scores": "the first in order of {count} nodes with equal scores",
    "equal_islands": "of {count} nodes with equal scores, the one that breaks NVLink islands least",
    "no_other_node": "no other node fits",
    "learned": "expected to run for {time_s}, learned from {count:run}",
    "data_at": "its data is at {places}",
    "data_takes": "{size} take {times}",
    "time_to": "{time} to {place}",
    "data_far": "the transfer time is unknown to {places}",
    "bandwidth_between": "{rate} each way between {gateways}",
    "ring": "ring {clusters}",
    "ring_with_bandwidth": "ring {clusters}, {rate} on each link",
    "most_free": "{policy} considers only {place}, the cluster with the most free GPU",
    "fallback_decides": "{policy} decides instead of {other}",
    "fallback_scores": "{policy} scores instead of {other}",
    "waits_for_better": "{policy} waits for a better place",
    "trained_for": "It was trained for {trained:cluster}, and the fleet has {count}: the fallback decides.",
    "unusable": "It cannot be used, and the fallback decides",
    # Preemption.
    "preempted": "preempted by {winner}",
    "job_of_priority": "job {job} of higher priority",
    "job_of_queue": "job {job} of queue {queue!r}",
    "job_of_priority_of_queue": "job {job} of higher priority, of queue {queue!r}",
    "place_lost": "its place goes to job {job} of higher priority",
    "waits_until": "waits until {what}",
    "waits_until_at": "waits until {what}, at {ends_at} at the latest",
    "victim_ends": "job {job} has ended",
    "more_end": "{count} more have ended",
    "victim_shrinks": "job {job} has shrunk by {count:replica}",
    "more_shrink": "{count} more have shrunk",
    # Standbys.
    "active_instead": "{place} is active instead of {other}",
    "active_after_loss": "{place} is active instead of {other}, {after:.1f} s after the last report of {other}",
    "standby_fits": "{place} has room for a standby",
    "standby_fits_nowhere": "no cluster has room for a standby",
    "standby_of": "standby of {name} ({job})",
    "no_warm_standby": "{name} has no warm standby any more, changed by {who}",
    "placed_again": "it was placed again",
    "service_changed": "the service has changed",
    "restarts_with_service": "it restarts with the change of the service",
    "not_running_yet": "{cluster} does not run it yet",
    "other_copy_ended": "the other copy of the service ({job}) is {state}",
    # Dependencies and arrays.
    "waits_for": "waits for {jobs}",
    "waits_for_more": "waits for {jobs}, and for {count:more job}",
    "to_succeed": "{job} to complete",
    "to_finish": "{job} to end",
    "to_start": "{job} to start",
    "to_fail": "{job} to fail",
    "released": "released: {jobs}",
    "released_alone": "released: it waits for no other job",
    "job_is": "{job} is {state}",
    "predecessor_deleted": "its predecessor {job} was deleted, but {required}",
    "predecessor_is": "its predecessor {job} {required}, but is {state}",
    "required_succeeded": "is required to have succeeded",
    "required_finished": "is required to have finished",
    "required_started": "is required to have run",
    "required_failed": "is required to have failed",
    "tasks_queued": "its tasks are in the queue",
    "tasks_run": "tasks are running",
    "tasks_ended": "tasks: {counts}",
    "count_of": "{count} {state}",
    "resumed_with_array": "resumed with its array",
    "state_of_array": "{state} with its array",
    # Clusters.
    "answers": "{cluster} answers (it was {state})",
    "stale": "{cluster} has not answered for {silent} s and gets no new work",
    "given_up": "{cluster} has not answered for {silent} s and counts as lost",
    "counts_as_lost": "{cluster} is not in the fleet any more and counts as lost",
    "halted": (
        "{silent} of {clusters} clusters do not answer: the control plane may be at fault, so nothing is placed"
        " elsewhere"
    ),
    # The fleet, agents, queues and tenants.
    "cordoned": "{place}: cordoned",
    "cordoned_for": "{place}: {why}",
    "drained_for": "{place}: {why}",
    "uncordoned": "{place} accepts new jobs again",
    "facts_set": "{cluster}: facts set: {facts}",
    "facts_unset": "{cluster}: no facts are set any more",
    "agent_lost": "the agent of {gateway} has not reported for {silent:g} s",
    "agent_again": "the agent of {gateway} reports again",
    "agent_first": "the agent of {gateway} reports for the first time",
    "queue_removed": "queue {name} removed",
    "pool_removed": "pool {name} removed",
    "reservation_removed": "reservation {name} removed",
    "reservation_ended": "reservation {name} has ended",
    "tenant_set": "tenant {name}",
    "record_changed": "{kind} {name}: {changes}",
    # Pods and workloads.
    "node_silent": "node {node} does not report its state",
    "ended_itself": "it ended",
    "after_restarts": "{what}, after {times:restart} in its place",
    "disrupted": "disrupted",
    "pod_deleted": "its pod was deleted",
    "pod_failed": "its pod failed without a reason",
    "waits_for_scheduler": "waits for its cluster's scheduler",
    "scheduling_gate": "held by a scheduling gate",
    "waits_for_preemption": "waits for preemption on {node}",
    "waits_for_objects": "waits for objects that its cluster creates first",
    "no_node_accepts": "no node accepts it",
    "keeps_crashing": "keeps crashing, {times:time} so far",
    "image_not_pulled": "the image of container {container} cannot be pulled",
    "container_not_started": "container {container} cannot start, {cause}",
    "out_of_memory": "container {container} ran out of memory and was killed",
    "container_signalled": "container {container} was ended by {signal}",
    "container_exited": "container {container} exited with {exit_code}",
    "ray_failed": "its Ray job failed",
    "ray_stopped": "its Ray job was stopped",
    "ray_rejects": "KubeRay rejects it",
    "ray_gave_up": "KubeRay gave up on it",
    "volcano_gave_up": "Volcano gave up on its job",
    "volcano_terminated": "Volcano ended its job after a pod disappeared",
    "volcano_aborted": "its job was aborted in Volcano",
    "suspended_there": "it is suspended there",
    "pods_gone": "its pods are gone",
    "pods_not_created": "its pods cannot be created",
    "object_not_created": "its {kind} cannot be created there",
    "kueue_evicted": "Kueue evicted it",
    "kueue_does_not_admit": "Kueue does not admit it",
    "workload_deactivated": "its Workload was deactivated",
    "admission_check": "the admission check {check} is {status}",
    "no_pod_yet": "no pod was created yet, for an unknown reason",
    "no_pod": "no pod was created, for an unknown reason: the controller for its kind may not run there",
    # Nodes and devices.
    "node_not_ready": "not ready",
    "no_kubelet": "its kubelet has not reported yet",
    "cordoned_there": "cordoned in its cluster",
    "cordoned_by": "cordoned by {who}",
    "drained_by": "drained by {who}",
    "reported_not_ready": "its cluster reports it as not ready",
    "reported_unhealthy": "its cluster reports it as unhealthy",
    "of_node": "its node: {what}",
    "of_cluster": "its cluster is {what}",
    "cluster_silent": "its cluster does not answer",
    "listed_first": "{source} is being listed for the first time",
    "not_reached": "cannot be reached",
    "not_reached_at": "cannot be reached at {address}",
    "not_answered": "did not answer {method} {path} in time",
    "no_answer_within": "no answer within {limit:g} s",
    "credentials_refused": "Seaway's credentials are not accepted there ({text}): they are wrong, or have expired",
    "no_credentials": "{source} gives no credentials",
    "exec_does_not_end": "no credentials: the exec plugin of its kubeconfig does not end",
    "user_unknown": "its user was not determined within {limit:g} s",
    "web_page": "it answers {status} with a web page; is that the address of a Kubernetes API server?",
    "not_kubernetes": "{name} does not answer like Kubernetes",
    "simulated_silence": "cluster {cluster!r}: {text} (simulated)",
    "request_lost": "the request was lost",
    "answer_lost": "the answer was lost",
    "device_unhealthy": "not healthy, says {source}",
    "not_served": "registered, but allocatable {resource} is 0: the plugin does not run",
    "renamed_or_not_served": (
        "registered, but allocatable {resource} is 0: the plugin does not run, or counts by another name,"
        " which clusters.hami.resource_name must name"
    ),
    "mode_unknown": "the mode {mode!r} is not known",
    "mode_undescribed": "in mode {mode!r}, which Volcano does not describe",
    "mig_without_profiles": "in MIG mode without profiles, as before HAMi v2.10",
    "few_allocatable": "only {count} of {total} {resource} are allocatable",
    "tainted": "tainted {taints}",
    # Drift and addresses.
    "object_deleted": "{name} was deleted",
    "object_changed": "{name}: {clauses}",
    "fields_changed": "{who} changed {fields}",
    "field_removed": "{fields} was removed",
    "fields_removed": "{fields} were removed",
    "more_fields": "{fields} and {count:more field}",
    "rank_0_without_address": "the pod of rank 0 has no address yet",
    "balancer_without_address": "the cluster has not assigned an address to the load balancer yet",
    "inside_only": "it is a {type}: only pods of the cluster reach it",
    "nodes_without_address": "no node of the cluster reports an address",
    "internal_address": "{host} is the internal address of node {node}, which has no external one",
    "ingress_not_accepted": "no Ingress controller has accepted it yet",
    "route_not_accepted": "no Gateway has accepted it yet",
    "gateway_refuses": "the Gateway does not accept it",
    # Alerts.
    "SeawayNotReady": "No job has been placed for 2 minutes",
    "SeawayStoreFails": "The database does not store changes. New jobs are refused",
    "SeawayRowsUnreadable": "{count:row} of the database cannot be read. Repair or remove them, or restore a backup",
    "SeawayDatabaseFails": "The database has failed {count:time} within 90 seconds",
    "SeawayDatabaseSlow": "1 % of database changes take {takes:.3g} s or longer",
    "SeawayDatabaseBehind": "{count:change} wait to be stored",
    "SeawayTaskFails": "The scheduled task {task} has failed for 10 minutes",
    "SeawayStandbyMissing": "Services without a standby that could take over: {count}",
    "SeawayNotificationsDead": "{count:message} of notifications could not be delivered",
    "SeawayDeploymentsFail": "{count:deployment} in {cluster} failed within 15 minutes",
    "SeawayJobsFail": "{count:job} failed within 15 minutes",
    "SeawayClusterUnreachable": "{cluster} does not answer",
    "SeawayNodesNotReady": "{count:node} of {cluster} not ready",
    "SeawayGPUsUnhealthy": "{count:unhealthy GPU} of {cluster}",
    "SeawayLowUtilisation": (
        "Only {percent:.1f} % of the GPU cores and memory of {cluster} have been allocated for more than an hour"
    ),
    "SeawayGatewayDead": "Gateway {gateway} does not answer",
    "SeawayGatewayFull": "The interface of gateway {gateway} is {share:.0%} full",
    "SeawayGatewayUnread": "The interface of gateway {gateway} cannot be read",
    "SeawayLinkLossy": "The link from {source} to {target} loses {share:.1%}",
    "SeawayAgentLost": "The agent of {gateway} does not report",
    "SeawayQueueLong": "A job has waited in queue {queue} for {waited_s}",
    "SeawayQueueBelowGuarantee": "Queue {queue} has less than its guarantee. A job has waited for {waited_s}",
    "SeawayQueueAtLimit": "Queue {queue} uses its limit of GPUs. A job has waited for {waited_s}",
    "SeawayPreemptionsMany": "{count:job} of queue {queue} were preempted within an hour",
    "SeawayStartEstimatesOff": "Half of the expected starts are off by more than {off_s}",
    "listed": "{parts}",
    "and_others": "{names} and others",
    # Checks of clusters.
    "context_of": "context {context!r} of {server}",
    "nodes_and_gpus": "{count:node}, {gpus}",
    "count_and_name": "{count} {name}",
    "no_gpus": "no GPUs found",
    "check_connection": "check the kubeconfig, its token and the network to the server",
    "not_checked": "cannot be checked",
    "kubernetes_version": "Kubernetes {version}, which answers in {took_ms} ms",
    "policies_need": "admission policies need 1.30",
    "create_namespaces": (
        "create the namespaces of tenants as in deploy/kubernetes/tenant.yaml, without namespaces.yaml"
    ),
    "no_read_refused": "it refused no read so far",
    "apply_karmada_member": "apply deploy/kubernetes/karmada-member.yaml there",
    "apply_member": "apply deploy/kubernetes/member.yaml and namespaces.yaml there",
    "rights_complete": "complete",
    "rights_missing": "Seaway may not {rights}",
    "no_plugin": "no device plugin reports any",
    "install_plugin": "install HAMi, or the device plugin of the vendor, on its GPU nodes",
    "gpus_shared": "{count} of {devices} can be shared between replicas",
    "some_unhealthy": "{count} unhealthy",
    "list_devices": "seaway fleet devices names them",
    "whole_gpus": "jobs get whole GPUs",
    "install_hami": "install HAMi there for slices of GPUs",
    "more_problems": "{count:more problem} of nodes",
    "valid_until": "valid until {until}",
    "create_longer_token": "create one that is valid for longer; later, join again to replace it",
    "joined_before": "it has been joined as {name!r} before, and keeps that name",
    "say_replace": "to replace its kubeconfig, say so when you complete the join",
    "gateway_is": "its gateway is {gateway}",
    "without_gateway": "no gateway belongs to it: jobs with bounds on the network do not run there",
    "put_network": "seaway network put FILE; see docs/network.md",
    "checks_failed": "the checks failed by a bug; see the server's log",
    "no_data_folder": "this server has no data folder",
    "clusters_are_set": ("the settings of this server name its clusters: add the kubeconfig there (docs/clusters.md)"),
    "simulated_are_set": (
        "the settings of this server name simulated clusters: remove clusters.fleet and simulated_url first"
    ),
    # Trained policies.
    "set_aside": "set aside for {time:g} s",
    "slower_than": "slower than {limit:g} ms",
    "stopped_after": "stopped after {limit:g} ms",
    "answer_not_finite": "its answer is not a number",
    "trained_for_others": "trained for {trained:cluster}, and the fleet has {count}",
    "may_not_wait": "it would wait, and this job may not",
    "nothing_fits": "nothing fits in {cluster}",
    "shown_no_node": "it is shown no node that fits",
    "scores_for_others": "{count:score} for {nodes:node}",
    # The database.
    "database_locked": "the database is locked by another process",
    "database_read_only": "the database may not be written to",
    "disk_fails": "the disk under the database fails",
    "database_damaged": "the database is damaged: restore a backup",
    "disk_full": "the disk under the database is full",
    "database_not_opened": "the database cannot be opened",
    "database_forbidden": "the database may not be opened",
    "no_database": "the file is not a database",
    "database_full": "the database has no room",
    "database_busy": "the database is busy with others' changes",
    "connections_full": "the database accepts no more connections",
    "database_refuses": "the database does not let Seaway in: check the URL",
    "connection_closed": "the database closed the connection",
    "database_silent": "the database does not answer",
    "database_silent_why": "the database does not answer: {why}",
    "connections_in_use": "all connections to the database are in use",
    "database_silent_for": "the database has not answered for {waited} s",
    # Explanations.
    "no_cluster_answers": "no cluster answers",
    "no_nodes": "no cluster has nodes",
    "nodes_fit": "{fits} of {nodes} nodes fit",
    "nodes_fit_best": "{fits} of {nodes} nodes fit, best {place}",
    "nodes_refused": "{count:node}: {why}",
    "nodes_excluded": "{count:node} {why}",
    "node_has": "{count:node} has {why}",
    "nodes_have": "{count:node} have {why}",
    "refused_are": "refused",
    "with_links": "{what} ({clauses})",
    "more_links": "{count:more link}",
    "but": "but {what}",
    "would_fit": "it would fit {changes} ({where})",
    "with": "with {field} {value}",
    "with_instead": "with {field} {value} instead of {asked}",
    "without": "without {field}",
    "other_nodes": "{place} and {count:other node}",
    "starts_and": "would start now and {what}",
    "may_shrink": "shrink {job} by {count:replica}",
    "may_displace": "displace {jobs}",
    "some_start": "{count} of {replicas} replicas start now, and the others when these have completed",
    "in_state": "{state}",
    "waits": "waits",
    "waits_first": "waits first in its queue, and {what}",
    "place_reserved": "{where} is reserved for it",
    "places_reserved": "{where} are reserved for it",
    "free_in": "{what}, free in {soon} s",
    "free_at": "{what}, free at about {starts_at}",
    "no_gateway": "its gateway {gateway!r} does not exist",
    "no_backfill": "its queue has no backfill, and an earlier job does not fit",
    "to_be_decided": "it is to be decided",
    "avoids": "it avoids {places} that rejected it, for a while",
    "count_of_devices": "{count:device}",
    "count_of_nodes": "{count:node}",
    "count_of_clusters": "{count:cluster}",
    "free_is_reserved": "the free resources are reserved for the first job of a queue",
    "capacity_is": "capacity is {what}",
    "displaced": "displaced by {winner}",
    "shrinks_off": "shrinks off {places}",
    "consequences": (
        "{moved:task} would move, {started} of {waiting:waiting task} would start, {stopped:running task} would have to"
        " wait"
    ),
    "would_shrink": "{count:elastic job} would shrink",
    "would_grow": "{count:elastic job} would grow",
    "starts_change": "{earlier:waiting task} would start earlier than expected now, {later} later",
    "shrinks_by": "shrinks by {count:replica} for {winner}",
    "grows_by": "grows by {count:replica}",
    "named_job": "job {job!r} of queue {queue!r}",
    "and_more": "{what} and {count} more",
    # Changes of the fleet, its queues and its network.
    "cluster_released": "{cluster} removed: {count:attempt} released",
    "removes_orphans": "{cluster} removes {names}, which belong to no job",
    "queue_set": "queue {name}: {what}",
    "of_policy": "policy {policy}",
    "of_policies": "policy {policy} with shadow {shadow}",
    "of_pool": "pool {pool}",
    "of_parent": "part of {parent}",
    "pool_set": "pool {name}: {clusters}",
    "all_clusters": "all clusters",
    "tenant_removed": "tenant {name} removed",
    "tokens_revoked": "{count:token} of it revoked",
    "jobs_removed": "{count:finished job} of it removed",
    "reservation_set": "reservation {name}: {what}",
    "reservation_begun": "reservation {name} has begun",
    "gpus": "{count:GPU}",
    "gpus_of_model": "{count:GPU} {model}",
    "reserved_for_tenant": "{what} for tenant {tenant}, from {begin} to {end}",
    "reserved_for_queue": "{what} for queue {queue}, from {begin} to {end}",
    "reserved_for_tenant_in_queue": "{what} for tenant {tenant} in queue {queue}, from {begin} to {end}",
    "reserved_for_no_job": "{what} for maintenance, from {begin} to {end}",
    "joins": "joins {policies}",
    "trained_policy": "a trained policy",
    "policy_imported": "policy {name} imported: {algo}, level {level}",
    "policy_signed_again": "policy {name} signed again: {algo}, level {level}",
    "policy_removed": "policy {name} removed",
    "evaluation_stored": "evaluation {name} stored",
    "evaluation_removed": "evaluation {name} removed",
    "cluster_takes": "traffic of cluster {cluster} takes {gateway}",
    "traffic_takes": "traffic from {source} to {target} takes {path}",
    "no_answer_of": "{name} does not answer",
    "serves_first": "it serves the running and waiting jobs, and comes first in the configured order",
    "meets_more": "it meets the bounds of {count:running job}, {other} those of {less}",
    "job_needs": "job {job} needs what {other} does not give",
    "comes_first": "it comes before {other} in the configuration and serves as well",
    "network_changed": "the network between gateways: {clauses}",
    "network_removed": "it is removed",
    "more_changes": "and {count:more change}",
    "gateway_added": "gateway {name} is added",
    "gateway_removed": "gateway {name} is removed",
    "gateway_changed": "gateway {name}: {changes}",
    "order_changed": "the order of gateways changes",
    "own_paths": "paths {source} to {target}: {paths} in place of the mesh's",
    "paths_of_mesh": "paths {source} to {target}: as the mesh has them, no own ones",
    "paths_changed": "paths {source} to {target}: {before} -> {after}",
    "all_connected": "all other pairs are connected directly",
    "pairs_not_connected": "pairs without paths are not connected",
    "probe_changed": "probe: {field} {before:g} -> {after:g}",
    **ERRORS,
}
"""English texts, which are the keys of translations. Filters have the texts of their reasons themselves.

A number with a word, such as ``{now:replica}``, is written with the word, in the plural if needed. Codes and their
parameters are stored and part of the API: they stay, and another text with other parameters gets another code.
"""

_MINUTES = frozenset({"starts_at", "until", "begin", "end"})
_SECONDS = frozenset({"ends_at"})
_TRANSLATED = frozenset({"state", "kind", "form", "role", "own", "why"})
_CLAUSES = frozenset({"also", "clauses", "problems"})
"""Parameters of which several reasons are separated by semicolons; those of others by commas."""


class Reason(str):
    """English text of a reason, with its code and parameters.

    Attributes
    ----------
    code, params
        Key in `TEXTS`, and its values.

    Examples
    --------
    >>> Reason("shrinks", was=4, now=1, why=Reason("drained", place="alpha/node-1"))
    'shrinks from 4 to 1 replica: alpha/node-1 is drained'
    """

    __slots__ = ("code", "params")
    code: str
    params: Params

    def __new__(cls, code: str, /, **params: Param) -> Reason:
        """Make a reason from its code."""
        return cls.stored(text(code, params), code, params)

    @classmethod
    def stored(cls, english: str, code: str, params: Params) -> Reason:
        """Return a reason with the text that was stored with it."""
        made = str.__new__(cls, english)
        made.code, made.params = code, params
        return made

    def __reduce__(self) -> tuple[Callable[..., Reason], tuple[str, str, Params]]:
        """Copy the text with the code and the parameters."""
        return Reason.stored, (str(self), self.code, self.params)


def reason_of(error: BaseException) -> str:
    """Return the text of an error, as a reason if it was raised with one."""
    given = error.args[0] if error.args else ""
    return given if isinstance(given, Reason) else str(error) or type(error).__name__


def received(body: Mapping[str, Any], text: str) -> str:
    """Return a reason from the JSON of the API with the fields `code` and `params`; `text` without a code."""
    code, params = body.get("code"), body.get("params")
    if not code or not isinstance(params, dict):
        return text

    def param(value: Any) -> Any:  # noqa: ANN401  # any parameter
        if isinstance(value, list):
            return tuple(map(param, value))
        return received(value, str(value.get("message", ""))) if isinstance(value, dict) else value

    return Reason.stored(text, str(code), {str(name): param(value) for name, value in params.items()})


def in_cluster(cluster: str, reason: str) -> Reason:
    """Return a reason with the name of its cluster in front of it, once."""
    return Reason("in_cluster", cluster=cluster, text=without_cluster(cluster, reason))


def without_cluster(cluster: str, reason: str) -> str:
    """Return a reason without the name of its cluster in front of it."""
    if not isinstance(reason, Reason):
        return reason.removeprefix(f"{cluster}: ")
    own = reason.params.get("text") if reason.code == "in_cluster" else reason
    return own if isinstance(own, str) else reason


def replaced(reason: str, old: str, new: str) -> str:
    """Return a reason with another text in place of one, in its parameters too."""
    if not isinstance(reason, Reason):
        return new if reason == old else reason.replace(old, new)

    def param(value: Param) -> Param:
        if isinstance(value, tuple):
            return tuple(replaced(each, old, new) for each in value)
        return replaced(value, old, new) if isinstance(value, str) else value

    return Reason(reason.code, **{name: param(value) for name, value in reason.params.items()})


def also(reason: str, *others: str) -> Reason:
    """Return a reason that others follow after semicolons. Empty ones are left out."""
    own = reason if isinstance(reason, Reason) else Reason("quoted", text=reason)
    return _followed(own, (*_followers(own), *filter(None, others)))


def either(names: Sequence[str]) -> str:
    """Return names as alternatives, such as ``a, b or c``."""
    *most, last = names
    return Reason("either", names=tuple(most), last=last) if most else last


def both(first: str, *others: str) -> str:
    """Return one or several reasons as a single one."""
    for each in others:
        first = Reason("both", one=first, other=each)
    return first


def without(reason: str, other: str) -> str:
    """Return a reason without another one that follows it."""
    if not isinstance(reason, Reason):
        return reason.removesuffix(f"; {other}")
    return _followed(reason, tuple(each for each in _followers(reason) if each != other))


def without_code(reason: str, code: str) -> str:
    """Return a reason without those of a code that follow it."""
    if not isinstance(reason, Reason):
        return reason
    return _followed(
        reason, tuple(each for each in _followers(reason) if not isinstance(each, Reason) or each.code != code)
    )


def _followers(reason: Reason) -> tuple[str, ...]:
    found = reason.params.get("also", ())
    return found if isinstance(found, tuple) else ()


def _followed(reason: Reason, others: tuple[str, ...]) -> Reason:
    params = {name: value for name, value in reason.params.items() if name != "also"}
    return Reason(reason.code, **params, **({"also": others} if others else {}))


def text(
    code: str,
    params: Params,
    template: str = "",
    said: Callable[[str], str] = str,
    marks: Marks = (", ", ": ", "; "),
) -> str:
    """Return the text of a reason.

    Parameters
    ----------
    template
        Translated template; empty for English.
    said
        Translates a reason or a state among the parameters.
    marks
        Separators: of a list, before `why`, and of clauses.

    Examples
    --------
    >>> text("reserved_for_job", {"job": "train", "starts_at": "2026-11-27T14:05:00Z"})
    'reserved for job train (starts at about 2026-11-27 14:05 UTC)'
    """
    template = template or TEXTS[code]
    values = {name: _written(name, value, said, marks) for name, value in params.items()}
    made = template.format_map(values)
    for name, mark in (("why", marks[1]), ("also", marks[2])):
        if isinstance(more := values.get(name), str) and more and f"{{{name}}}" not in template:
            made += mark + more
    return made


def time_param(at_ns: int, *, seconds: bool = False) -> str:
    """Return a time of the wall clock as a parameter, to the minute or to the second."""
    return datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).strftime(f"%Y-%m-%dT%H:%M:{'%S' if seconds else '00'}Z")


_TIMES = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def time_text(seconds: int) -> str:
    """Format seconds, such as ``1h30m``."""
    parts = []
    for size, unit in _TIMES:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


class Count(int):
    """Number with thousands separators, and with a word that is the format."""

    def __format__(self, form: str) -> str:
        if form and (len(form) == 1 or not form[0].isalpha()):
            return format(int(self), form)
        return f"{int(self):,}{f' {form}' if form else ''}{'s' if form and self != 1 else ''}"


def _written(name: str, value: Param, said: Callable[[str], str], marks: Marks) -> str | int | float:
    if isinstance(value, tuple):
        return marks[2 if name in _CLAUSES else 0].join(map(said, value))
    if isinstance(value, Reason) or name in _TRANSLATED:
        return said(str(value) if isinstance(value, int | float) else value)
    if name in _MINUTES or name in _SECONDS:
        form = "%Y-%m-%d %H:%M UTC" if name in _MINUTES else "%Y-%m-%d %H:%M:%S UTC"
        return datetime.fromisoformat(str(value)).strftime(form)
    if isinstance(value, int):
        return time_text(value) if name.endswith("_s") else Count(value)
    return value
