"""Errors of the client, sorted by remedy."""

# ruff: noqa: INP001, T201  # a standalone example that prints

from seaway import Client
from seaway.client.errors import RejectedError, StaleError, UnknownError


def main() -> None:
    """Cause some errors and handle them."""
    with Client() as seaway:
        try:
            seaway.submit(name="wrong", resources={"gpus": 1, "gpu_memory": 8})
        except RejectedError as error:  # fix the request: the error names the field and the remedy
            print(f"{error.where} {error.message}")

        job = seaway.submit(name="right", resources={"gpus": 1, "gpu_memory": "8Gi"}, key="night-run-7")
        again = seaway.submit(name="right", resources={"gpus": 1, "gpu_memory": "8Gi"}, key="night-run-7")
        print(f"one job for one key: {job.id == again.id}")

        seaway.update(job.id, {"priority": 1})
        while job.priority != 2:
            try:
                job = seaway.update(job.id, {"priority": 2}, seen=job)
            except StaleError:  # a concurrent change: read again, then retry
                job = seaway.job(job.id)
        print(f"priority {job.priority}")

        seaway.delete(job.id)
        try:
            seaway.job(job.id)
        except UnknownError as error:
            print(error)


if __name__ == "__main__":
    main()
