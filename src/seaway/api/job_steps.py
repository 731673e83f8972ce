"""Sending jobs on their way: cancel, suspend, resume, delete."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Request, Response

from seaway.api.bodies import read
from seaway.api.desk import desk_of, who_of
from seaway.api.finding import find
from seaway.api.jobs import JobRef, version_meant
from seaway.api.replies import job_reply, nothing
from seaway.api.routes import IF_MATCH, Handler, operation, router
from seaway.application.records import JobRecord, Role
from seaway.wire.fields import Line
from seaway.wire.job_out import JobOut
from seaway.wire.message import Incoming

routes = router("jobs")

Step = Callable[[str, str, str, int | None], JobRecord]


class StepIn(Incoming):
    """Why a job is sent on its way."""

    reason: Line = ""
    """A sentence for people; left out, who did it is said."""


def step(path: str) -> Callable[[Handler], Handler]:
    """Declare a step; the body that gives its reason may be left out."""
    return operation(
        routes,
        "POST",
        f"/jobs/{{job}}/{path}",
        Role.USER,
        {200: JobOut},
        errors=(404, 409, 412),
        body=StepIn,
        headers=(IF_MATCH,),
        body_needed=False,
    )


@step("cancel")
async def cancel_job(request: Request, job: JobRef) -> Response:
    """End a job; its record stays. Cancelling what is cancelled changes nothing."""
    return job_reply(await _take(request, job, desk_of(request).plane.jobs.cancel))


@step("suspend")
async def suspend_job(request: Request, job: JobRef) -> Response:
    """Stop a job until somebody resumes it."""
    return job_reply(await _take(request, job, desk_of(request).plane.jobs.suspend))


@step("resume")
async def resume_job(request: Request, job: JobRef) -> Response:
    """Send a suspended job back to its queue."""
    return job_reply(await _take(request, job, desk_of(request).plane.jobs.resume))


@operation(routes, "DELETE", "/jobs/{job}", Role.USER, {204: None}, errors=(404, 409, 412), headers=(IF_MATCH,))
async def delete_job(request: Request, job: JobRef) -> Response:
    """End a job if it is not over, and list it no longer."""
    await _take(request, job, desk_of(request).plane.jobs.delete)
    return nothing()


async def _take(request: Request, job: str, step: Step) -> JobRecord:
    """Take a step, for the reason that the body gives, if there is one."""
    found = await find(request, job)
    version = version_meant(request, found)
    has_body = request.method != "DELETE" and await request.body()
    reason = (await read(request, StepIn)).reason if has_body else ""
    return await desk_of(request).threads.write(step, found.id, who_of(request).name, reason, version)
