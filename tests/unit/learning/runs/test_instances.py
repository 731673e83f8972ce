"""Digests identify the content of instances."""

from __future__ import annotations

from dataclasses import fields, make_dataclass, replace

from seaway.domain.job import DeviceRules, Job
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.wide import drawn
from seaway.learning.runs.instances import digest_of, digest_of_mix


def with_models(instance: Instance, *models: str) -> Instance:
    """Return an instance whose first job requires some models."""
    first, *rest = instance.jobs
    demand = replace(first.demand, devices=DeviceRules(models=frozenset(models)))
    return replace(instance, jobs=(replace(first, demand=demand), *rest))


def test_equal_instances_have_equal_digests() -> None:
    """Names and the order of sets have no influence."""
    one, other = drawn("placement", 1, 3)[0], drawn("placement", 1, 3)[0]
    assert digest_of(one) == digest_of(replace(other, name="other"))
    several = [f"model-{number}" for number in range(20)]
    assert digest_of(with_models(one, *several)) == digest_of(with_models(one, *reversed(several)))


def test_different_instances_have_different_digests() -> None:
    """Order of jobs, demands and fleets have an influence."""
    one, other = drawn("placement", 2, 3)
    found = [one, other, with_models(one, "T4"), replace(one, jobs=one.jobs[::-1]), replace(one, fleet=other.fleet)]
    assert len({digest_of(each) for each in found}) == len(found)


def test_new_fields_with_defaults_do_not_change_digests() -> None:
    """A run resumes after an update of Seaway that adds a property to jobs or nodes."""
    one = drawn("placement", 1, 3)[0]
    jobs = [[getattr(job, each.name) for each in fields(Job)] for job in one.jobs]
    later = make_dataclass("Job", [("later", int, 7)], bases=(Job,), frozen=True, slots=True, kw_only=True)
    named = [dict(zip([each.name for each in fields(Job)], values, strict=True)) for values in jobs]
    assert digest_of(replace(one, jobs=tuple(later(**each) for each in named))) == digest_of(one)
    assert digest_of(replace(one, jobs=tuple(later(**each, later=8) for each in named))) != digest_of(one)


def test_the_mix_has_a_separate_digest() -> None:
    """Other past jobs change only this digest."""
    one = drawn("placement", 1, 3)[0]
    other = replace(one, mix=one.mix[1:])
    assert digest_of(one) == digest_of(other)
    assert digest_of_mix(one) != digest_of_mix(other)
