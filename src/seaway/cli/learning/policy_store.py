"""Stores of trained policies for `seaway policy`: this machine, or a server."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seaway.domain.errors import ConflictError, ForbiddenError, RejectedError, UnknownError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import typer

    from seaway.cli.remote import Body
    from seaway.client.sync import Client
    from seaway.learning.policies.file import PolicyFile
    from seaway.learning.policies.library import JoinedLibrary


MAX_COMPARED = 1_000
"""Maximum number of comparisons to search."""


class PolicyStore(Protocol):
    """Store of trained policies."""

    def listed(self) -> Body:
        """Return all policies, in the form of the API."""

    def shown(self, name: str) -> Body:
        """Return the properties of a policy, in the form of the API."""

    def compared(self, body: Body) -> list[Body]:
        """Return comparisons with a trained policy as the shadow, newest first."""

    def content(self, name: str) -> bytes:
        """Return the file of a policy."""

    def import_policy(self, file: PolicyFile) -> str:
        """Store a policy; return its location as text for people."""

    def remove(self, name: str) -> None:
        """Remove an imported policy."""


@contextmanager
def store_of(context: typer.Context, *, remote: bool) -> Iterator[PolicyStore]:
    """Open the store of the server or of this machine."""
    if not remote:
        yield HereStore()
        return
    from seaway.cli.remote import connect

    with connect(context) as client:
        yield ServerStore(client)


class ServerStore:
    """Policies of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def listed(self) -> Body:
        """Query all policies."""
        from seaway.client.calls.policies import policies

        return self._client.body(policies())

    def shown(self, name: str) -> Body:
        """Query a policy."""
        from seaway.client.calls.policies import policy

        return self._client.body(policy(name))

    def compared(self, body: Body) -> list[Body]:
        """Query the latest `MAX_COMPARED` comparisons, and select those of the policy; none without permission."""
        from seaway.cli.remote import whole
        from seaway.client.calls.queues import shadows

        try:
            rows = whole(self._client, shadows(limit=MAX_COMPARED))["shadows"]
        except ForbiddenError:
            return []
        return [row for row in rows if _is_model(row["shadow"], body)]

    def content(self, name: str) -> bytes:
        """Download the file of a policy."""
        from seaway.client.calls.policies import export_policy

        return self._client.send(export_policy(name))

    def import_policy(self, file: PolicyFile) -> str:
        """Upload a policy."""
        from seaway.client.calls.policies import import_policy
        from seaway.learning.policies.file import pack

        self._client.send(import_policy(pack(file)))
        return "on the server"

    def remove(self, name: str) -> None:
        """Remove a policy from the server."""
        from seaway.client.calls.policies import delete_policy

        self._client.send(delete_policy(name))


class HereStore:
    """Policies of this machine: built-in ones, and files in the data folder."""

    def listed(self) -> Body:
        """List heuristics, policies of other packages, and trained policies."""
        from seaway.scheduling.policies.registry import BUILT_IN, policy_names

        rules = [
            {"name": name, "description": BUILT_IN[name].description, "source": "seaway"}
            if name in BUILT_IN
            else {"name": name, "description": "from another package", "source": "package"}
            for name in policy_names()
        ]
        return {"policies": [*rules, *map(self._row, library().names())]}

    def shown(self, name: str) -> Body:
        """Read a policy."""
        for row in self.listed()["policies"]:
            if row["name"] == name and row["source"] != "trained":
                return {**row, "trained": None}
        return shown_file(_loaded(name))

    def compared(self, body: Body) -> list[Body]:
        """Return no comparisons, because this machine has no queues."""
        return []

    def content(self, name: str) -> bytes:
        """Read and check the file of a policy."""
        from seaway.learning.policies.file import pack
        from seaway.scheduling.policies.registry import policy_names

        if name in policy_names():
            raise RejectedError(f"policy {name!r} is a heuristic and has no file: only trained policies have one")
        return pack(_loaded(name))

    def import_policy(self, file: PolicyFile) -> str:
        """Write a policy to the data folder."""
        from seaway.learning.policies.file import write_policy
        from seaway.learning.policies.library import ShippedLibrary
        from seaway.scheduling.policies.registry import policy_names

        name = file.manifest.name
        if name in policy_names() or name in ShippedLibrary().names():
            raise RejectedError(f"{name!r} is the name of a policy that Seaway has; import it with --name")
        path = _path(name)
        if path.exists() and library().load(name).digest != file.digest:
            raise ConflictError(f"another policy {name!r} exists; remove it first, or import this one with --name")
        write_policy(path, file)
        return f"in {path}"

    def remove(self, name: str) -> None:
        """Remove the file of a policy."""
        from seaway.learning.policies.library import ShippedLibrary
        from seaway.scheduling.policies.registry import BUILT_IN, policy_names

        path = _path(name)
        if not path.exists():
            if name in BUILT_IN or name in ShippedLibrary().names():
                raise ConflictError(f"policy {name!r} is built in and cannot be removed")
            if name in policy_names():
                raise ConflictError(f"policy {name!r} belongs to another package; uninstall that package")
            raise UnknownError(f"no policy {name!r} was imported on this machine: {path} is not there")
        path.unlink()

    def _row(self, name: str) -> Body:
        try:
            says = library().load(name).manifest.says or "a trained policy"
        except RejectedError as error:
            says = f"cannot be used: {error}"
        return {"name": name, "description": says, "source": "trained"}


def shown_file(file: PolicyFile) -> Body:
    """Return a policy file in the form of the API."""
    from seaway.application.policies import ImportedPolicy
    from seaway.learning.policies.signature import signer
    from seaway.wire.policies import trained_fields

    manifest = file.manifest
    trained = trained_fields(ImportedPolicy(file, signer(file)))
    return {"name": manifest.name, "description": manifest.says, "source": "trained", "trained": trained}


def library() -> JoinedLibrary:
    """Return the trained policies of this machine."""
    from seaway.learning.policies.library import FolderLibrary, JoinedLibrary, ShippedLibrary

    return JoinedLibrary((ShippedLibrary(), FolderLibrary(folder())))


def folder() -> Path:
    """Return the folder of imported policies. It may not exist yet."""
    from seaway.client.config import data_folder

    return data_folder() / "policies"


def can_try() -> bool:
    """Report whether networks can run on this machine."""
    return find_spec("onnxruntime") is not None


def not_tried(file: PolicyFile) -> PolicyFile:
    """Return a file without a test run, and print a note."""
    from seaway.cli.errors import note
    from seaway.learning.policies.onnx_message import MISSING

    note(f"policy {file.manifest.name} is not tried here: {MISSING}")
    return file


def _loaded(name: str) -> PolicyFile:
    """Return a policy of this machine, after a test run if possible."""
    from seaway.learning.policies.file import unpack
    from seaway.learning.policies.library import FolderLibrary, ShippedLibrary

    if not can_try():
        for each in (ShippedLibrary(), FolderLibrary(folder())):
            if name in each.names():
                return not_tried(unpack(each.content(name)))
    return library().load(name)


def _is_model(title: str, body: Body) -> bool:
    """Report whether the title in a comparison is the model of a policy, like `pilot@3f2a9c1b2d4e`."""
    name, _, digits = title.partition("@")
    return bool(digits) and name == body["name"] and body["trained"]["model_sha256"].startswith(digits)


def _path(name: str) -> Path:
    """Return the file of a policy in the data folder.

    Raises
    ------
    RejectedError
        When the name is invalid.
    """
    from seaway.domain.tenancy import NAME
    from seaway.learning.policies.file import SUFFIX

    if not NAME.fullmatch(name):
        raise RejectedError(f"{name[:80]!r} is not a name of a policy: use a-z, 0-9, '-' and '.', 63 at most")
    return folder() / f"{name}{SUFFIX}"
