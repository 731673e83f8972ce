"""Submits a job after a dry run, and waits until it ends.

The client finds server and token as the command line does: SEAWAY_SERVER and SEAWAY_TOKEN, a profile, or the server on
this machine.
"""

# ruff: noqa: INP001, T201  # a standalone example that prints

from seaway import Client


def main() -> None:
    """Run one small job."""
    job = {
        "name": "hello",
        "resources": {"gpus": 1, "gpu_memory": "8Gi"},
        "run": {"image": "pytorch:2.9", "command": ["python", "train.py"]},
        "expected_duration": "10s",
    }
    with Client() as seaway:
        trial = seaway.dry_run(job)
        print(f"policy {trial.policy}: {trial.message}")
        for choice in trial.candidates[:3]:
            print(f"{'→' if choice.chosen else ' '} {choice.cluster}/{choice.node}, {choice.price_per_hour} an hour")

        submitted = seaway.submit(job)
        running = seaway.wait(submitted.id, "running", timeout_s=60)
        print(f"{running.name} is {running.state} on {', '.join(running.nodes)}")
        print(seaway.explain(submitted.id).message)

        over = seaway.wait(submitted.id, timeout_s=60)
        print(f"{over.name} is {over.state}: {over.message}")


if __name__ == "__main__":
    main()
