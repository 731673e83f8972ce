"""Options of sbatch and srun: their short names, and reasons for those without a counterpart."""

from __future__ import annotations

SHORT = {
    "A": "account", "a": "array", "b": "begin", "c": "cpus-per-task", "C": "constraint", "d": "dependency",
    "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "H": "hold", "i": "input", "J": "job-name",
    "k": "no-kill", "L": "licenses", "M": "clusters", "m": "distribution", "N": "nodes", "n": "ntasks",
    "O": "overcommit", "o": "output", "p": "partition", "Q": "quiet", "q": "qos", "s": "oversubscribe",
    "S": "core-spec", "t": "time", "v": "verbose", "W": "wait", "w": "nodelist", "x": "exclude", "B": "extra-node-info",
}  # fmt: skip
"""Long name of each short option of sbatch."""

OPTIONAL = frozenset({
    "exclusive", "get-user-env", "nice", "propagate", "kill-on-bad-exit", "bcast", "compress", "immediate",
    "resv-ports",
})  # fmt: skip
"""Options whose value, if any, follows an equals sign."""

FLAGS = frozenset({
    "hold", "no-kill", "overcommit", "quiet", "oversubscribe", "verbose", "wait", "requeue", "no-requeue",
    "contiguous", "spread-job", "use-min-nodes", "parsable", "reboot", "test-only", "help", "usage", "version",
    "ignore-pbs", "stepmgr", "no-container-mount-home", "container-mount-home", "container-writable",
    "container-readonly", "container-remap-root", "no-container-remap-root", "no-container-entrypoint",
    "container-entrypoint", "label", "unbuffered", "pty", "exact", "overlap", "preserve-env", "multi-prog",
    "quit-on-interrupt", "disable-status",
})  # fmt: skip
"""Options without a value."""

SHORT_OF_SRUN = {
    **SHORT, "E": "preserve-env", "I": "immediate", "K": "kill-on-bad-exit", "l": "label", "r": "relative",
    "T": "threads", "u": "unbuffered", "V": "version", "X": "disable-status", "Z": "no-allocate", "h": "help",
}  # fmt: skip
"""Long name of each short option of srun."""

FLAGS_OF_SRUN = FLAGS - {"wait"} | {"no-allocate", "preserve-slurm-env", "external", "async"}
"""Options of srun without a value."""

_LOGS = "Seaway stores the output: seaway logs JOB"
_PINNING = "the kubelet assigns CPUs"
_SUBMIT = "is about the command sbatch"
_PRIORITY = "scales differ: give --priority"

CHANGED = {
    "qos": "there is no quality of service: use --priority, --preemptible or another --queue",
    "nice": _PRIORITY, "priority": _PRIORITY,
    "accel-bind": "all processes of a step see the GPUs of their replica",
    "no-kill": "a lost node restarts the job", "gpu-freq": "the node sets clocks",
    "switches": "give --ring-bandwidth, or bounds between replicas", "contiguous": "nodes have no order",
}  # fmt: skip
"""Options without which the job behaves differently, with the difference."""

DROPPED = {
    "output": _LOGS, "error": _LOGS, "open-mode": _LOGS, "label": _LOGS, "unbuffered": _LOGS,
    "comment": "give --label KEY=VALUE", "wckey": "give --label KEY=VALUE",
    "wait": "seaway submit follows the job", "parsable": _SUBMIT, "quiet": _SUBMIT, "verbose": _SUBMIT,
    "get-user-env": "the image has the environment", "propagate": "limits of this shell are not sent",
    "requeue": "Seaway always restarts a job that loses its node",
    "kill-on-invalid-dep": "Seaway always skips such a job",
    "distribution": _PINNING, "hint": _PINNING, "threads-per-core": _PINNING, "ntasks-per-core": _PINNING,
    "ntasks-per-socket": _PINNING, "sockets-per-node": _PINNING, "cores-per-socket": _PINNING,
    "extra-node-info": _PINNING, "mem-bind": _PINNING, "cpu-bind": _PINNING, "core-spec": _PINNING,
    "thread-spec": _PINNING, "cpu-freq": _PINNING,
    "wait-all-nodes": "all replicas start together", "oom-kill-step": "a replica that runs out of memory fails",
    "spread-job": "the policy of the queue selects nodes", "use-min-nodes": "the number of nodes is fixed",
    "prefer": "is a preference: the policy of the queue selects nodes",
    "oversubscribe": "devices are shared by amounts: give --gpu-memory and --gpu-cores",
    "time-min": "the time limit is fixed", "profile": "see the live charts of the job", "acctg-freq": "see its charts",
    "delay-boot": "nodes run", "reboot": "nodes run",
    "kill-on-bad-exit": "the job ends when a replica fails", "exact": "there is one step",
    "overlap": "there is one step",
    "preserve-env": "numbers of nodes and tasks are fixed", "quit-on-interrupt": _SUBMIT, "disable-status": _SUBMIT,
    "no-container-mount-home": "no folder of a user is mounted", "container-writable": "containers can be written",
    "container-remap-root": "the cluster sets the user", "no-container-remap-root": "the cluster sets the user",
    "ignore-pbs": _SUBMIT,
}  # fmt: skip
"""Options that the job does not need, with the reason."""

STEP_DROPPED = {
    "job-name": "names the step", "comment": "describes the step", "exclusive": "a step uses all of the job",
    "partition": "a step runs in its job", "account": "a step runs in its job", "qos": "a step runs in its job",
    "compress": "the image has the program", "immediate": "a step starts at once", "threads": _SUBMIT,
    "msg-timeout": _SUBMIT, "preserve-slurm-env": "numbers of nodes and tasks are fixed",
    "slurmd-debug": _SUBMIT,
}  # fmt: skip
"""Options of srun that a step does not need, with the reason."""

STEP_REFUSED = {
    "chdir": "use cd before the step", "time": "has no counterpart for a step: use timeout, or --time of the job",
    "export": "selects the variables of a step: use env before the program",
    "version": "there is no srun in a container", "help": "there is no srun in a container",
    "prolog": "write it before the step", "epilog": "write it after the step",
    "task-prolog": "start a script that runs it before the program",
    "task-epilog": "start a script that runs it after the program",
    "resv-ports": "ports are not reserved", "cpus-per-gpu": "give --cpus-per-task",
}  # fmt: skip
"""Options of srun that would change a step, with the reason."""

_PLACE = "names nodes, which differ between clusters: give --cluster, or placement.node_labels in a job file"
_VOLUME = "mounts folders of the nodes, which a cluster does not share with containers"

REFUSED = {
    "constraint": "features have no counterpart: give --gpu-model, --cluster-label or placement.node_labels",
    "cluster-constraint": "features of clusters have no counterpart: give --cluster-label",
    "nodelist": _PLACE, "exclude": _PLACE, "nodefile": _PLACE,
    "licenses": "licenses are not counted", "reservation": "a reservation is for queues: submit to its --queue",
    "begin": "a job cannot wait for a time: submit it then", "deadline": "a deadline has no counterpart",
    "hold": "submit the job when it may start", "no-requeue": "Seaway restarts a job that loses its node",
    "bb": "there is no burst buffer", "bbf": "there is no burst buffer", "input": "containers have no standard input",
    "uid": "submit as that user", "gid": "the cluster sets the group", "network": "has no counterpart",
    "mcs-label": "has no counterpart", "overcommit": "CPUs are not shared by tasks: give fewer --ntasks",
    "tmp": "local disks are not counted", "export-file": "give --env NAME=VALUE",
    "gpus-per-socket": "sockets are not counted: give --gpus-per-node",
    "ntasks-per-gpu": "give --ntasks-per-node", "test-only": "submit with --dry-run",
    "container": "OCI bundles are not sent: give --image", "container-name": "give --image",
    "container-mounts": _VOLUME, "container-mount-home": _VOLUME, "container-workdir": "use --chdir",
    "container-readonly": "containers can be written", "multi-prog": "all replicas run one program",
    "mpi": "processes are started without PMI: use torchrun or mpirun within a node",
    "pty": "there is no terminal: seaway exec", "hetjob": "all replicas are equal",
    "relative": _PLACE, "jobid": "there is one step", "bcast": "the image has the program",
    "het-group": "all replicas are equal", "wrap": "write the command in the script",
}  # fmt: skip
"""Options that would change the job, with the reason."""
