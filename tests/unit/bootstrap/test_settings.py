from __future__ import annotations

from pathlib import Path

import pytest

from seaway.bootstrap.settings import Settings, cluster_facts, load_settings, trace_settings
from seaway.domain.errors import RejectedError
from seaway.domain.facts import Facts


def written(folder: Path, text: str) -> Path:
    """Write a settings file."""
    path = folder / "seaway.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(path: Path | None = None, environment: dict[str, str] | None = None, **server: object) -> dict[str, str]:
    """Return what is wrong, by where it stands; empty when all is well."""
    try:
        load_settings(path, environment or {}, {("server", name): value for name, value in server.items()})
    except RejectedError as error:
        return {each.where: each.message for each in (error, *error.also)}
    return {}


def test_nothing_given_means_the_defaults() -> None:
    """Without a file, variables or flags everything is as it is documented."""
    assert load_settings(None, {}, {}) == Settings()


def test_agents_report_to_the_server_that_all_commands_mean_unless_reported_another(tmp_path: Path) -> None:
    """The agent's own variable goes before the one of all commands, which goes before the file; empty is not set."""
    path = written(tmp_path, '[agent]\nserver = "file"\n')
    general, special = {"SEAWAY_SERVER": "general"}, {"SEAWAY_AGENT_SERVER": "special"}
    assert load_settings(path, general, {}).agent.server == "general"
    assert load_settings(path, general | special, {}).agent.server == "special"
    assert load_settings(path, general | special, {("agent", "server"): "flag"}).agent.server == "flag"
    assert load_settings(path, {"SEAWAY_SERVER": ""}, {}).agent.server == "file"


def test_flags_go_before_the_environment_before_the_file(tmp_path: Path) -> None:
    """Whatever stands closer to the command wins, setting by setting; a flag that was not given does not count."""
    path = written(
        tmp_path, '[server]\nport = 1\nhost = "file"\nbody_limit_bytes = 7\n[control]\nassume_timeout_s = 5\n'
    )
    environment = {"SEAWAY_SERVER_PORT": "2", "SEAWAY_SERVER_HOST": "environment", "PATH": "/bin", "SEAWAY_TOKEN": "t"}
    settings = load_settings(path, environment, {("server", "port"): 3, ("server", "host"): None})
    assert settings.server.port == 3
    assert settings.server.host == "environment"
    assert settings.body_limit_bytes == 7
    assert settings.control.assume_timeout_s == 5.0


@pytest.mark.parametrize(
    "text",
    [
        '[clusters.karmada]\nkubeconfig = "karmada.config"\n[clusters]\nrequest_timeout_s = 5\n',
        '[clusters]\nrequest_timeout_s = 5\nkarmada.kubeconfig = "karmada.config"\n',
        'clusters = {request_timeout_s = 5, karmada = {kubeconfig = "karmada.config"}}\n',
    ],
)
def test_a_section_has_tables(tmp_path: Path, text: str) -> None:
    """A table in a section can be written in all the ways that TOML has, and gives way to its variable."""
    path = written(tmp_path, text)
    settings, sources = trace_settings(path, {}, {})
    assert (settings.clusters.request_timeout_s, settings.clusters.karmada.kubeconfig) == (5, "karmada.config")
    assert sources["clusters", "karmada.kubeconfig"] == f"{path}: [clusters] karmada.kubeconfig"
    environment = {"SEAWAY_CLUSTERS_KARMADA_KUBECONFIG": "other"}
    settings, sources = trace_settings(path, environment, {})
    assert settings.clusters.karmada.kubeconfig == "other"
    assert sources["clusters", "karmada.kubeconfig"] == "SEAWAY_CLUSTERS_KARMADA_KUBECONFIG"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('karmada_kubeconfig = "a"', "unknown setting 'karmada_kubeconfig'; did you mean 'karmada.kubeconfig'?"),
        ('karmada = "a"', "unknown setting 'karmada'; available: fleet, "),
        ('karmada.config = "a"', "unknown setting 'karmada.config'; did you mean 'karmada.kubeconfig'?"),
        ("karmada.kubeconfig = 5", "5 must be text"),
    ],
)
def test_tables_in_a_section_are_checked_as_well(tmp_path: Path, text: str, says: str) -> None:
    """Anything that does not go into such a table is reported, with the name that was meant."""
    (said,) = problems(written(tmp_path, f"[clusters]\n{text}\n")).values()
    assert said.startswith(says)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ('hami.resource_name = "gpu"', "hami.resource_name", "'gpu' is not a name of a resource, like nvidia.com/gpu"),
        ('hami.resource_mem = ""', "hami.resource_mem", "'' is not a name of a resource, like nvidia.com/gpu"),
        ("volcano_memory_factor = 0", "volcano_memory_factor", "must be more than 0"),
        ('pull_secrets = "good, Bad_One"', "pull_secrets", "'Bad_One' is not a name of an object"),
        ('local_queue = "a b"', "local_queue", "'a b' is not a name of an object"),
        ('local_queue = "a,b"', "local_queue", "'a,b' is not a name of an object"),
        ('volcano_queue = "-"', "volcano_queue", "'-' is not a name of an object"),
        ('expose.default = "Ingress"', "expose.default", "is 'Ingress', which is not one of expose.types"),
        ('expose.domain = "x"', "expose.domain", "is 'x'; use a host name like chat.example.com"),
        (
            'expose.types = "ClusterIP, HTTPRoute"',
            "expose.gateway",
            "must be the NAMESPACE/NAME of a Gateway, for the type HTTPRoute",
        ),
        (
            'expose.types = "ClusterIP, Nodeport"',
            "expose.types",
            "'Nodeport' is not a type; use ClusterIP, NodePort, LoadBalancer, Ingress, HTTPRoute",
        ),
    ],
)
def test_what_clusters_would_not_take_is_reported_at_the_start(
    tmp_path: Path, text: str, where: str, says: str
) -> None:
    """A name that Kubernetes refuses is reported with the settings, rather than by each job's failure."""
    path = written(tmp_path, f"[clusters]\n{text}\n")
    file = f"{path}: " if where in text else ""  # one that is missing has no place
    assert problems(path) == {f"{file}[clusters] {where}": says}


@pytest.mark.parametrize(
    "url",
    ["seaway.example.com", "https://", "ftp://a.example", "https://a.example/seaway", "https://a:b@c.example", "//[x"],
)
def test_where_people_reach_it_is_a_whole_address_without_a_path(url: str) -> None:
    """Anything that could be no origin of a browser is reported at the start."""
    assert "is not an address like https://seaway.example.com" in problems(public_url=url)["[server] public_url"]
    assert problems(public_url="https://a.example:8443") == problems(public_url="http://a.example/") == {}


@pytest.mark.parametrize("proxies", ["*", "10.0.0.1/8", "proxy.example", "10.0.0.0/8; 10.1.1.1"])
def test_a_proxy_that_is_believed_is_an_address_or_a_network(proxies: str) -> None:
    """No one is believed by a name, nor everybody by a star."""
    assert (
        "is not an address or network, like 10.1.2.3" in problems(trusted_proxies=proxies)["[server] trusted_proxies"]
    )
    assert problems(trusted_proxies="10.0.0.0/8, fd00::/8,192.0.2.1") == {}


def test_behind_a_proxy_tokens_are_needed() -> None:
    """Without tokens only this machine may ask, and what a proxy hands on comes from anywhere."""
    assert "like EUR" in problems(currency="euro")["[server] currency"]
    assert problems(currency="EUR") == {}
    assert problems(no_auth=True, trusted_proxies="10.1.2.3").keys() == {"[server] no_auth"}
    assert problems(no_auth=True, public_url="https://a.example").keys() == {"[server] no_auth"}


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("no", False), ("FALSE", False)])
def test_the_environment_says_yes_and_no(text: str, value: bool) -> None:
    """Truth is written in the usual ways."""
    assert load_settings(None, {"SEAWAY_SERVER_NO_AUTH": text}, {}).server.no_auth is value


def test_numbers_are_read_as_they_are_meant(tmp_path: Path) -> None:
    """A whole number may be written as 5.0 and a fraction as 5; one that is not whole is not a whole number."""
    assert (
        load_settings(written(tmp_path, "[control]\nbatch_size = 5.0\npoll_interval_s = 2"), {}, {}).control.batch_size
        == 5
    )
    assert (
        "whole number"
        in problems(written(tmp_path, "[control]\nbatch_size = 5.5"))[f"{tmp_path}/seaway.toml: [control] batch_size"]
    )


def test_facts_of_clusters_are_read_and_checked(tmp_path: Path) -> None:
    """Each cluster has a table; every wrong fact is reported with its cluster and field."""
    right = '[clusters.facts.gpu-east]\nregion = "eu"\nprice_per_gpu_hour = {A100 = "2.5", "*" = 1}\n'
    settings = load_settings(written(tmp_path, right), {}, {})
    assert cluster_facts(settings.clusters) == {"gpu-east": Facts("eu", prices={"A100": 2_500_000, "*": 1_000_000})}
    wrong = '[clusters.facts.gpu-east]\nzone = "eu"\nprice_per_gpu_hour = {A100 = "much"}\n'
    assert problems(written(tmp_path, wrong)) == {
        "[clusters.facts.gpu-east] price_per_gpu_hour.A100": "'much' is not a price like 2.50",
        "[clusters.facts.gpu-east] zone": "unknown field 'zone'; did you mean 'zones'?",
    }


def test_every_mistake_is_reported_together(tmp_path: Path) -> None:
    """Unknown names, wrong kinds and impossible figures, of file, environment and flags alike, come in one error."""
    path = written(
        tmp_path,
        '[server]\nprot = 1\nno_auth = "perhaps"\n[sever]\nport = 2\n[database]\nurl = 5\njob_retention_days = -1\n'
        '[oidc]\nroles = 3\n[control]\npoll_interval_s = "soon"\nbatch_size = 0\n',
    )
    found = problems(
        path, {"SEAWAY_SERVER_HOTS": "x", "SEAWAY_PORT": "1", "SEAWAY_CONTROL_GRACE_PERIOD_S": "1"}, port=70_000
    )
    at = f"{path}: "
    assert found == {
        f"{at}[server]": "unknown setting 'prot'; did you mean 'port'?",
        f"{at}[server] no_auth": "'perhaps' must be true or false",
        str(path): "unknown section 'sever'; did you mean 'server'?",
        f"{at}[database] url": "5 must be text",
        f"{at}[oidc] roles": "3 must be a table",
        f"{at}[control] poll_interval_s": "'soon' must be a number",
        "SEAWAY_SERVER_HOTS": "unknown setting 'hots'; did you mean 'host'?",
        "SEAWAY_PORT": "unknown variable; did you mean SEAWAY_SERVER_PORT?",
        f"{at}[database] job_retention_days": "-1 is out of range; it must be 0 or more, and less than 2^53",
        "[server] port": "70000 is not a port",
        f"{at}[control] batch_size": "must be more than 0",
        "SEAWAY_CONTROL_GRACE_PERIOD_S": "must be at least stale_after_s",
    }


def test_variables_of_a_service_in_kubernetes_are_no_settings() -> None:
    """Kubernetes sets the address of a Service `seaway` in its pods, which is no mistake of a user."""
    assert load_settings(None, {"SEAWAY_PORT": "tcp://10.0.0.1:80"}, {}) == Settings()


@pytest.mark.parametrize("text", ["[server", "server = 5", "\xff"])
def test_a_file_that_cannot_be_read_is_one_mistake_among_others(tmp_path: Path, text: str) -> None:
    """A broken file is reported like any other mistake, and the rest is checked all the same."""
    path = tmp_path / "seaway.toml"
    path.write_bytes(text.encode("latin-1"))
    found = problems(path, {"SEAWAY_SERVER_PORT": "eighty"})
    assert str(path) in found
    assert found["SEAWAY_SERVER_PORT"] == "'eighty' must be a whole number"


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    """Anyone who names a file means it."""
    assert problems(tmp_path / "none.toml")[f"{tmp_path}/none.toml"] == "cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("server", "tls_key", "key.pem"),
        ("control", "unhealthy_cluster_threshold", 0),
        ("control", "unhealthy_cluster_threshold", 1.5),
        ("control", "assume_timeout_s", float("inf")),
        ("control", "assume_timeout_s", float("nan")),
        ("control", "stale_after_s", 100),
        ("control", "queue_discipline", "alphabet"),
        ("control", "drift", "ignore"),
    ],
)
def test_figures_that_make_no_sense_are_refused(section: str, name: str, value: object) -> None:
    """Anything that has to go together does, and shares and times are ones."""
    with pytest.raises(RejectedError):
        load_settings(None, {}, {(section, name): value})
