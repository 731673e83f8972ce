"""Job mixes that were not used for tuning: modifications of the openb list in new arrival orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks.data import ORDERS, openb
from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.job import DeviceRules, Job
from seaway.simulation.trace import Trace, requested_milli

ASKED = 1.06
"""Requested share of the fleet, a little more than all."""

Bend = Callable[[list[Job], list[str], Random], list[Job]]


def constrained(share: float) -> Bend:
    """Bind a share of the GPU jobs to one model, drawn in proportion to the fleet's devices."""

    def bend(jobs: list[Job], models: list[str], random: Random) -> list[Job]:
        return [_bound(job, random.choice(models)) if _gpus(job) and random.random() < share else job for job in jobs]

    return bend


def sharing(share: float) -> Bend:
    """Set the share of GPU jobs that use a part of a device."""

    def bend(jobs: list[Job], _: list[str], random: Random) -> list[Job]:
        gpu = [job for job in jobs if _gpus(job)]
        part = [job for job in gpu if job.demand.request.gpu_milli < 1000]
        whole = [job for job in gpu if job.demand.request.gpu_milli == 1000]
        count = round(len(gpu) * share)
        bent = random.choices(part, k=count) + random.choices(whole, k=len(gpu) - count)
        return [job for job in jobs if not _gpus(job)] + bent

    return bend


def several(share: float) -> Bend:
    """Set the share of GPU work in jobs with several devices."""

    def bend(jobs: list[Job], _: list[str], random: Random) -> list[Job]:
        many = [job for job in jobs if _gpus(job) > 1]
        rest = [job for job in jobs if _gpus(job) <= 1]
        wanted = sum(map(requested_milli, rest)) * share / (1 - share)
        each = sum(map(requested_milli, many)) / len(many)
        return rest + random.choices(many, k=round(wanted / each))

    return bend


def more_cpu(times: float) -> Bend:
    """Increase the requested CPU of every job."""

    def bend(jobs: list[Job], _: list[str], __: Random) -> list[Job]:
        return [_request(job, cpu_milli=int(job.demand.request.cpu_milli * times)) for job in jobs]

    return bend


def even_sizes(jobs: list[Job], _: list[str], random: Random) -> list[Job]:
    """Set the request of jobs with a part of a device to one to nine tenths of it, uniformly."""
    bent = []
    for job in jobs:
        milli = 100 * random.randrange(1, 10)
        part = 0 < job.demand.request.gpu_milli < 1000
        bent.append(_request(job, gpu_milli=milli, gpu_memory_mib=milli) if part else job)
    return bent


VARIANTS: dict[str, Bend] = {
    "fresh order": lambda jobs, _, __: jobs,
    "20 % bound to a model": constrained(0.2),
    "33 % bound to a model": constrained(0.33),
    "60 % bound to a model": constrained(0.6),
    "60 % share a device": sharing(0.6),
    "all share a device": sharing(1.0),
    "30 % on several devices": several(0.3),
    "50 % on several devices": several(0.5),
    "1.5 times the CPU": more_cpu(1.5),
    "even sizes": even_sizes,
    "whole devices only": lambda jobs, _, __: [j for j in jobs if j.demand.request.gpu_milli % 1000 == 0],
    "no CPU-only jobs": lambda jobs, _, __: [job for job in jobs if _gpus(job)],
}


def variant(name: str, seed: int) -> Trace:
    """Modify the openb list, and shuffle nodes and arrivals; jobs repeat after all have arrived."""
    random = Random(f"{name} {seed}")
    trace = openb(ORDERS[0])
    models = [device.model for device in trace.fleet.devices]
    mix = _named(VARIANTS[name](list(trace.mix), models, random))
    nodes = list(trace.fleet.clusters[0].nodes)
    random.shuffle(nodes)
    fleet = Fleet((Cluster("shuffled", tuple(nodes)),))
    arrivals = random.sample(mix, len(mix))
    enough = ASKED * sum(device.core_milli for device in fleet.devices)
    while sum(map(requested_milli, arrivals)) < enough:
        arrivals += random.choices(mix, k=100)
    return Trace(fleet, tuple(_named(arrivals)), tuple(mix))


def _named(jobs: Sequence[Job]) -> list[Job]:
    return [replace(job, name=f"job-{number}") for number, job in enumerate(jobs)]


def _gpus(job: Job) -> int:
    return job.demand.request.gpus


def _request(job: Job, **figures: Any) -> Job:  # noqa: ANN401  # fields of a request
    return replace(job, demand=replace(job.demand, request=replace(job.demand.request, **figures)))


def _bound(job: Job, model: str) -> Job:
    return replace(job, demand=replace(job.demand, devices=DeviceRules(models=frozenset({model}))))
