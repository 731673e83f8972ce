"""Joins on the settings page: clusters by a kubeconfig or a command, with checks as they end, and gateways."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from seaway.client.calls import fleet, network, service
from seaway.client.calls import joins as calls
from seaway.domain.errors import RejectedError, UnknownError
from seaway.web import addresses
from seaway.web.fragment import Fragment
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field, FileForm, Form, confirm, dialog, notify, secret_field
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.joins import JoinList, JoinOut

REFRESH_S = 1.0

LARGEST_FILE = 256 * 1024
"""Maximum size of a kubeconfig, bytes."""


class Joining:
    """Joins in progress, for an admin."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._joins: dict[str, JoinOut] = {}
        self._fragment = Fragment("joining", visit.words)
        on_act(self._fragment, self._act)

    def callback(self, value: JoinList) -> None:
        """Accept the joins in progress."""
        self._joins = {each.id: each for each in value.joins}
        words = self._visit.words
        titles = {one.check: title_of(words, one.check) for each in value.joins for one in each.checks}
        self._fragment.show(joins=value.joins, titles=titles, obstacle=value.obstacle)

    async def _act(self, act: str, name: str) -> None:
        words, found = self._visit.words, self._joins.get(name)
        if act == "upload":
            FileForm(words, words("Upload a kubeconfig"), "*", words("Check it"), self._upload, LARGEST_FILE)
        elif act == "invite":
            await self._invite()
        elif found and act == "drop":
            await self._visit.ask(calls.drop_join(found.id))
            self._visit.ask_again(calls.joins())
        elif found and act == "finish":
            fields = [
                Field("name", words("Name"), found.name, hint=words("Jobs are stored under it, so it cannot change")),
                Field("replace", words("Replace the kubeconfig of a joined cluster"), value=False),
            ]

            async def finish(given: dict[str, Any]) -> None:
                await self._finish(found.id, given)

            Form(words, words("Join {name}", name=found.name), fields, words("Join"), finish)

    async def _upload(self, _: str, __: str, content: bytes) -> None:
        text = content.decode("utf-8", "replace")
        names, current = await asyncio.to_thread(contexts_of, text)
        if len(names) < 2:
            await self._begin(text)
            return
        words = self._visit.words
        hint = words("The kubeconfig has {n} contexts. Each is a cluster, and is joined by itself.", n=len(names))
        field = Field("context", words("Context"), current, dict(zip(names, names, strict=True)), hint)

        async def begin(given: dict[str, Any]) -> None:
            await self._begin(text, given["context"])

        Form(words, words("Choose a context"), [field], words("Check it"), begin)

    async def _begin(self, kubeconfig: str, context: str = "") -> None:
        await self._visit.ask(calls.begin_join(kubeconfig, context))
        self._visit.ask_again(calls.joins())

    async def _invite(self) -> None:
        made = await self._visit.ask(calls.begin_join())
        self._visit.ask_again(calls.joins())
        words, origin = self._visit.words, addresses.origin_of(str(self._visit.request.base_url))
        with dialog(words("Command for the cluster")) as shown:
            text = words(
                "Run it in a shell with kubectl, as an admin of the cluster. It is valid for 15 minutes, and is shown "
                "only once."
            )
            secret_field(words, shown, text, made.command.replace("URL", origin, 1), words("Command"))

    async def _finish(self, join_id: str, given: dict[str, Any]) -> None:
        words = self._visit.words
        done = await self._visit.ask(calls.finish_join(join_id, given["name"], replace=given["replace"]))
        for call in (calls.joins(), fleet.clusters()):
            self._visit.ask_again(call)
        later = words("The server runs with simulated clusters. It uses joined clusters after a restart.")
        notify(words("Cluster {name} is joined", name=done.name), later if done.note else "")


async def add_gateway(visit: Visit) -> None:
    """Open the form for a gateway, then show the command that measures on it, with the token of its agent."""
    words = visit.words
    names = [each.name for each in (await visit.ask(fleet.clusters())).clusters]
    version = (await visit.ask(network.agents())).version
    try:
        there: dict[str, Any] = (await visit.ask(network.network())).model_dump(mode="json")
        first = ""
    except UnknownError:
        there, version = {"gateways": []}, ""
        first = words("It is the first one: from now on, measurements replace the links that clusters report.")
    fields = [
        Field("name", words("Name"), hint=first),
        Field("cluster", words("Cluster"), "", {"": words("none: a user site"), **{each: each for each in names}}),
        Field("site", words("User site"), hint=words("Place of the users behind it, if there is no cluster")),
        Field("address", words("Address"), hint=words("Other gateways probe it: IPv6 or IPv4")),
        Field("interface", words("Interface"), hint=words("Towards the other gateways, for SRv6; empty if not used")),
    ]

    async def add(given: dict[str, Any]) -> None:
        gateway, before = {name: value for name, value in given.items() if value}, there["gateways"]
        try:
            await visit.ask(network.put_network({**there, "gateways": [*before, gateway]}, version=version))
        except RejectedError as error:
            raise error.within(f"gateways[{len(before)}].") from None
        made = await visit.ask(service.create_token(given["name"], role="agent", gateway=given["name"]))
        for call in (fleet.gateways(), network.agents(), service.tokens()):
            visit.ask_again(call)
        with dialog(words("Agent of gateway {name}", name=given["name"])) as shown:
            text = words("Run it on the gateway, where Seaway is installed. It is shown only once.")
            secret_field(words, shown, text, _agent_command(visit, given["name"], made.secret), words("Command"))

    Form(words, words("Add a gateway"), fields, words("Add"), add)


def _agent_command(visit: Visit, gateway: str, secret: str) -> str:
    origin = addresses.origin_of(str(visit.request.base_url))
    token = f"(umask 077; echo {secret} > agent.token)"
    return f"{token}; sudo seaway agent --gateway {gateway} --server {origin} --token-file agent.token"


async def ask_to_leave(visit: Visit, name: str, jobs: int) -> None:
    """Open the dialog that confirms to leave a cluster, with what would happen to its jobs."""
    words = visit.words
    text = words("Its kubeconfig is removed. Workloads continue in the cluster, and its name stays reserved.")
    if jobs:
        answer = await visit.ask(service.whatif({"drain": [name]}))
        text += " " + words(
            "It runs {n:job}. After the grace period they are placed elsewhere: {moved} fit now, and {stopped} "
            "would wait. To move them first, drain the cluster.",
            n=jobs,
            moved=len(answer.moved),
            stopped=len(answer.stopped),
        )

    async def leave() -> None:
        await visit.ask(calls.leave_cluster(name))
        for call in (calls.joins(), fleet.clusters()):
            visit.ask_again(call)
        notify(words("Cluster {name} was left", name=name))

    confirm(words, words("Leave cluster {name}?", name=name), text, words("Leave"), leave)


def contexts_of(kubeconfig: str) -> tuple[list[str], str]:
    """Return the contexts of a kubeconfig, and the current one or the first; none if the API is to name its error."""
    import yaml

    try:
        body = yaml.load(kubeconfig, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        names = list(dict.fromkeys(str(each["name"]) for each in body["contexts"]))
        current = str(body.get("current-context"))
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, RecursionError):
        return [], ""
    return names, current if current in names else next(iter(names), "")


def title_of(words: Words, check: str) -> str:
    """Return the title of a check, such as ``rights in alpha``."""
    kind, _, rest = check.partition(" ")
    match kind:
        case "version":
            return words("Version of {name}", name=rest.removeprefix("of "))
        case "rights":
            return words("Rights in {name}", name=rest.removeprefix("in "))
        case "GPUs":
            return words("vGPU layer of {name}", name=rest.removeprefix("in "))
        case "cluster" if rest:
            return words("Cluster {name}", name=rest)
    titles = {
        "kubeconfig": words("Kubeconfig"),
        "token": words("Token"),
        "cluster": words("Connection"),
        "network": words("Network"),
        "name": words("Name"),
    }
    return titles.get(check, check)
