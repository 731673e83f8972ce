"""A card has one product name, from any source."""

from __future__ import annotations

import pytest

from seaway.adapters.kubernetes.device_plugins.vendors import nvidia_label_model, nvidia_model, profile_slices


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA-NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA-Tesla T4", "NVIDIA Tesla T4"),
        ("Tesla T4", "NVIDIA Tesla T4"),
        ("", "NVIDIA GPU"),
        ("NVIDIA-", "NVIDIA GPU"),
    ],
)
def test_the_maker_replaces_front_once(said: str, model: str) -> None:
    """Old HAMi and Volcano put the vendor before names that begin with it."""
    assert nvidia_model(said) == model


@pytest.mark.parametrize(
    ("label", "model"),
    [
        ("NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA-A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB"),
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA-A100-80GB-PCIe", "NVIDIA A100 80GB PCIe"),
        ("NVIDIA-GeForce-RTX-3090", "NVIDIA GeForce RTX 3090"),
        ("Tesla-V100-SXM2-32GB", "NVIDIA Tesla V100-SXM2-32GB"),
        ("Tesla-T4", "NVIDIA Tesla T4"),
    ],
)
def test_labels_get_their_blanks_back(label: str, model: str) -> None:
    """Dashes of the name itself stay."""
    assert nvidia_label_model(label) == model


@pytest.mark.parametrize(("profile", "slices"), [("1g.5gb", 1), ("7g.80gb", 7), ("1g.10gb+me", 1), ("9g", 0), ("", 0)])
def test_a_profile_says_its_compute_slices(profile: str, slices: int) -> None:
    """It is the number before the g."""
    assert profile_slices(profile) == slices
