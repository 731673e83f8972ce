"""The known fields of the objects that Seaway and most users write; a server knows no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.fakes.kubernetes.kinds import CONFIG_MAPS, DEPLOYMENTS, JOBS, PODS, SERVICES, STATEFUL_SETS, Json, Kind


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a message; a field that is not in `inside` is not checked further.

    Attributes
    ----------
    names
        All of them.
    inside
        Messages, or lists of messages, by field.
    """

    names: frozenset[str]
    inside: dict[str, Fields] = field(default_factory=dict)


def _fields(names: str, **inside: Fields) -> Fields:
    return Fields(frozenset(names.split()) | inside.keys(), inside)


_META = _fields(
    "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp "
    "deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields"
)
_CONTAINER = _fields(
    "name image command args workingDir envFrom volumeDevices livenessProbe readinessProbe startupProbe lifecycle "
    "terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty restartPolicy "
    "restartPolicyRules",
    ports=_fields("name hostPort containerPort protocol hostIP"),
    env=_fields("name value valueFrom"),
    resources=_fields("limits requests claims"),
    resizePolicy=_fields("resourceName restartPolicy"),
    volumeMounts=_fields("name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr"),
)
_POD = _fields(
    "volumes ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy "
    "nodeSelector serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC "
    "shareProcessNamespace securityContext imagePullSecrets hostname subdomain affinity schedulerName hostAliases "
    "priorityClassName priority dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead "
    "topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates resourceClaims resources "
    "hostnameOverride workloadRef schedulingGroup",
    containers=_CONTAINER,
    initContainers=_CONTAINER,
    tolerations=_fields("key operator value effect tolerationSeconds"),
)
_TEMPLATE = _fields("", metadata=_META, spec=_POD)


def _whole(*more: str, **spec: Fields) -> Fields:
    return _fields(f"apiVersion kind status {' '.join(more)}", metadata=_META, **spec)


_KNOWN: dict[Kind, Fields] = {
    CONFIG_MAPS: _whole("data", "binaryData", "immutable"),
    PODS: _whole(spec=_POD),
    JOBS: _whole(
        spec=_fields(
            "parallelism completions activeDeadlineSeconds podFailurePolicy successPolicy backoffLimit "
            "backoffLimitPerIndex maxFailedIndexes selector manualSelector ttlSecondsAfterFinished completionMode "
            "suspend podReplacementPolicy managedBy",
            template=_TEMPLATE,
        )
    ),
    DEPLOYMENTS: _whole(
        spec=_fields(
            "replicas selector strategy minReadySeconds revisionHistoryLimit paused progressDeadlineSeconds",
            template=_TEMPLATE,
        )
    ),
    STATEFUL_SETS: _whole(
        spec=_fields(
            "replicas selector volumeClaimTemplates serviceName podManagementPolicy updateStrategy "
            "revisionHistoryLimit minReadySeconds persistentVolumeClaimRetentionPolicy ordinals",
            template=_TEMPLATE,
        )
    ),
    SERVICES: _whole(
        spec=_fields(
            "selector clusterIP clusterIPs type externalIPs sessionAffinity loadBalancerIP loadBalancerSourceRanges "
            "externalName externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses sessionAffinityConfig "
            "ipFamilies ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy "
            "trafficDistribution",
            ports=_fields("name protocol appProtocol port targetPort nodePort"),
        )
    ),
}


_MESSAGES = frozenset({"metadata", "spec", "template", "resources"})
"""Fields with one message, not a list of them."""


def drop_unknown(kind: Kind, body: Json) -> list[str]:
    """Remove unknown fields from an object; return their paths, like ``spec.template.spec.imag``."""
    if known := _KNOWN.get(kind):
        return list(_drop(known, body, ""))
    return []


def _drop(known: Fields, body: Json, where: str) -> Iterator[str]:
    for name in [each for each in body if each not in known.names and not each.startswith("$")]:
        del body[name]
        yield f"{where}{name}"
    for name, inside in known.inside.items():
        found = body.get(name)
        if isinstance(found, dict) and name in _MESSAGES:
            yield from _drop(inside, found, f"{where}{name}.")
        elif isinstance(found, list):
            for at, each in enumerate(found):
                if isinstance(each, dict):
                    yield from _drop(inside, each, f"{where}{name}[{at}].")
