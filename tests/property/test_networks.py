from hypothesis import given

from seaway.cli.output import as_yaml
from seaway.domain.gateways import NetworkConfig
from seaway.wire.network_in import NetworkConfigIn, network_text
from seaway.wire.reading import read_value, read_yaml_message
from tests.property.networks import networks


@given(networks())
def test_a_network_that_is_written_reads_the_same(network: NetworkConfig) -> None:
    """A network document reads back equal to the network, as values and as YAML."""
    text = network_text(network)
    assert read_value(NetworkConfigIn, text).config() == network
    assert read_yaml_message(NetworkConfigIn, as_yaml(text)).config() == network
