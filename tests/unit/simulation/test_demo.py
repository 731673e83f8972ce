from seaway.simulation.demo import demo_fleet, demo_jobs
from seaway.simulation.trace import requested_milli


def test_the_demo_has_unlike_clusters_behind_all_gateways_but_the_users() -> None:
    """Three clusters, four gateways, a link for each pair both ways, and more than one model of GPU."""
    fleet = demo_fleet()
    assert [cluster.gateway for cluster in fleet.clusters] == ["gw-1", "gw-2", "gw-3"]
    assert len(fleet.gateways) == 4
    assert len({(link.source, link.target) for link in fleet.links}) == 12
    assert len({device.model for device in fleet.devices}) == 4


def test_demo_jobs_hang_on_the_seed_alone_and_fill_the_fleet() -> None:
    """The same seed draws the same jobs; they ask for about what there is, and many mind the network."""
    jobs = demo_jobs(300, seed=3)
    assert jobs == demo_jobs(300, seed=3) != demo_jobs(300, seed=4)
    asked = sum(requested_milli(job) for job in jobs) / (1000 * demo_fleet().device_count)
    assert 0.8 < asked < 1.4
    assert sum(job.demand.network.any for job in jobs) > 60
