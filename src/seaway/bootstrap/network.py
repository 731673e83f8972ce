"""The wiring of what a control plane knows of the network between gateways."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from seaway.application.control.steer import Steering
from seaway.application.network.active import ActivePaths
from seaway.application.network.agents import Agents
from seaway.application.network.book import LinkBook
from seaway.application.network.configuration import Configuration
from seaway.application.network.desk import Desk
from seaway.application.network.reports import Reports
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.writer import Writer
from seaway.domain.gateways import NetworkConfig


@dataclass(frozen=True, slots=True)
class Network:
    """The network between gateways: how it is meant to be, who measures it, and what is taken of that."""

    configuration: Configuration
    active: ActivePaths
    agents: Agents
    reports: Reports


class JsonDocuments:
    """Writes networks as JSON, as people give them; fills `seaway.application.network.configuration.Documents`."""

    def read(self, text: str) -> NetworkConfig:
        """Read what `write` wrote."""
        from seaway.wire.network_in import NetworkConfigIn
        from seaway.wire.reading import read_json

        return read_json(NetworkConfigIn, text).config()

    def write(self, config: NetworkConfig) -> str:
        """Write a network."""
        from seaway.wire.network_out import network_text

        return orjson.dumps(network_text(config)).decode()


def make_network(store: Store, writer: Writer, clock: Clock, book: LinkBook, steering: Steering) -> Network:
    """Put it together; the link book goes by it from now on, and traffic is steered along its paths."""
    agents = Agents(store, writer, clock)
    network = Network(
        Configuration(store, writer, clock, JsonDocuments()),
        ActivePaths(store, writer, clock),
        agents,
        Reports(writer, clock, agents, book),
    )
    network.configuration.follow(lambda config: book.use(config, clock.now_ns()))
    for follower in (network.active.use, agents.use, network.reports.use):
        network.configuration.follow(follower)
    network.active.follow(book.choose)
    steering.desk = Desk(network.active, book, clock)
    return network
