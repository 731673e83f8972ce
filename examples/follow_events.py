"""Submits several jobs and follows all of them to completion."""

# ruff: noqa: INP001, T201  # a standalone example that prints

import asyncio

from seaway import AsyncClient


async def follow(seaway: AsyncClient, number: int) -> str:
    """Submit a job and print its events live; reconnects automatically."""
    job = await seaway.submit(
        name=f"sweep-{number}",
        resources={"gpus": 1, "gpu_memory": "25%"},
        labels={"sweep": "example"},
        expected_duration="10s",
    )
    state: str = job.state
    async for event in seaway.follow(job.id):
        print(f"{job.name}: {event.state or event.kind}: {event.message}")
        state = event.state or state
    return state


async def main() -> None:
    """Follow three jobs."""
    async with AsyncClient() as seaway:
        states = await asyncio.gather(*(follow(seaway, number) for number in range(3)))
        print(f"ended as {', '.join(states)}")
        async for job in seaway.jobs(label="sweep=example"):
            print(f"{job.name} took {len((await seaway.attempts(job.id)).attempts)} attempt")


if __name__ == "__main__":
    asyncio.run(main())
