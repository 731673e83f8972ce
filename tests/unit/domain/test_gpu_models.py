"""Names of GPU models."""

from __future__ import annotations

from itertools import product as pairs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.gpu_models import covered, covers, label_model, maker, most_specific, nearest

PRODUCTS = """
NVIDIA A100-SXM4-40GB
NVIDIA A100-SXM4-80GB
NVIDIA A100-PCIE-40GB
NVIDIA A100 80GB PCIe
NVIDIA A100X
NVIDIA A800-SXM4-80GB
NVIDIA RTX A1000
NVIDIA RTX A6000
NVIDIA A10
NVIDIA A10G
NVIDIA A16
NVIDIA A2
NVIDIA A30
NVIDIA A40
NVIDIA H100 80GB HBM3
NVIDIA H100 PCIe
NVIDIA H100 NVL
NVIDIA H20
NVIDIA H200
NVIDIA H200 NVL
NVIDIA GH200 480GB
NVIDIA B200
NVIDIA GB200
NVIDIA L4
NVIDIA L40
NVIDIA L40S
Tesla T4
NVIDIA T4G
NVIDIA T400 4GB
Tesla V100-SXM2-16GB
Tesla V100-SXM2-32GB
Tesla V100-PCIE-32GB
Tesla V100S-PCIE-32GB
Tesla P4
Tesla P40
Tesla P100-PCIE-16GB
Tesla K80
NVIDIA GeForce GTX 1080 Ti
NVIDIA GeForce RTX 2080
NVIDIA GeForce RTX 2080 Ti
NVIDIA GeForce RTX 2080 SUPER
NVIDIA GeForce RTX 3090
NVIDIA GeForce RTX 4090
NVIDIA GeForce RTX 4090 D
Quadro RTX 6000
NVIDIA RTX 6000 Ada Generation
NVIDIA RTX PRO 6000 Blackwell Server Edition
NVIDIA TITAN V
AMD Instinct MI210
AMD Instinct MI250X
AMD Instinct MI300X
AMD Instinct MI300A
AMD Instinct MI300X OAM
AMD Radeon Pro W7900
AMD Radeon RX 7900 XT
AMD Radeon RX 7900 XTX
Intel(R) Data Center GPU Max 1550
TPU v5e
TPU v5p
Ascend910B3
Odd "Z9" = {x} \\ [2]
""".strip().splitlines()

COVERED = {
    "A100": ["A100-SXM4-40GB", "A100-SXM4-80GB", "A100-PCIE-40GB", "A100 80GB PCIe"],
    "nvidia-tesla-a100": ["A100-SXM4-40GB", "A100-SXM4-80GB", "A100-PCIE-40GB", "A100 80GB PCIe"],
    "A 100": ["A100-SXM4-40GB", "A100-SXM4-80GB", "A100-PCIE-40GB", "A100 80GB PCIe"],
    "A100-80GB": ["A100-SXM4-80GB", "A100 80GB PCIe"],
    "a100-80g": ["A100-SXM4-80GB", "A100 80GB PCIe"],
    "A100-80GB-PCIE": ["A100 80GB PCIe"],
    "nvidia_a100_80gb_pcie": ["A100 80GB PCIe"],
    "NVIDIA-A100-80GB-PCIe": ["A100 80GB PCIe"],
    "A100-PCIE": ["A100-PCIE-40GB", "A100 80GB PCIe"],
    "A100-80GB-SXM": ["A100-SXM4-80GB"],
    "A100-SXM4": ["A100-SXM4-40GB", "A100-SXM4-80GB"],
    "NVIDIA-A100-SXM4-40GB": ["A100-SXM4-40GB"],
    "A100X": ["A100X"],
    "A1000": ["RTX A1000"],
    "A10": ["A10"],
    "A2": ["A2"],
    "RTX-A6000": ["RTX A6000"],
    "RTXA6000": ["RTX A6000"],
    "rtx_a6000": ["RTX A6000"],
    "A6000": ["RTX A6000"],
    "RTX 6000": ["Quadro RTX 6000"],
    "RTX6000-Ada": ["RTX 6000 Ada Generation"],
    "RTX6000Ada": ["RTX 6000 Ada Generation"],
    "nvidia-rtx-pro-6000": ["RTX PRO 6000 Blackwell Server Edition"],
    "H100": ["H100 80GB HBM3", "H100 PCIe", "H100 NVL"],
    "nvidia-h100-80gb": ["H100 80GB HBM3"],
    "H100-SXM": ["H100 80GB HBM3"],
    "H100-SXM5-80GB": ["H100 80GB HBM3"],
    "NVIDIA-H100-80GB-HBM3": ["H100 80GB HBM3"],
    "H20": ["H20"],
    "H200": ["H200", "H200 NVL"],
    "B200": ["B200"],
    "GH200": ["GH200 480GB"],
    "L4": ["L4"],
    "nvidia-l4": ["L4"],
    "L40": ["L40"],
    "L40S": ["L40S"],
    "T4": ["T4"],
    "Tesla-T4": ["T4"],
    "V100": ["V100-SXM2-16GB", "V100-SXM2-32GB", "V100-PCIE-32GB"],
    "V100-32GB": ["V100-SXM2-32GB", "V100-PCIE-32GB"],
    "V100S": ["V100S-PCIE-32GB"],
    "P4": ["P4"],
    "1080ti": ["GTX 1080 Ti"],
    "RTX2080TI": ["RTX 2080 Ti"],
    "2080ti": ["RTX 2080 Ti"],
    "RTX 2080": ["RTX 2080"],
    "RTX2080": ["RTX 2080"],
    "geforce_rtx_2080_super": ["RTX 2080 SUPER"],
    "RTX-4090": ["RTX 4090"],
    "RTX 4090D": ["RTX 4090 D"],
    "MI300X": ["MI300X", "MI300X OAM"],
    "AMD_Instinct_MI300X_OAM": ["MI300X OAM"],
    "mi250x": ["MI250X"],
    "W7900": ["Radeon Pro W7900"],
    "RX7900XT": ["RX 7900 XT"],
    "RX 7900 XTX": ["RX 7900 XTX"],
    "Max 1550": ["Max 1550"],
    "TPU": ["TPU v5e", "TPU v5p"],
    "tpu-v5p": ["TPU v5p"],
    "ascend910b3": ["Ascend910B3"],
    "Radeon": ["Radeon Pro W7900", "RX 7900 XT", "RX 7900 XTX"],
    "Z9": ['Odd "Z9" = {x} \\ [2]'],
    "H999": [],
    "A1": [],
    "100": [],
    "A10-0": [],
    "GB": [],
    "80": [],
    "---": [],
    "": [],
}
"""Names, and what follows the vendor in each product that they cover."""


@pytest.mark.parametrize("name", COVERED)
def test_a_name_covers_the_products_that_have_all_its_words_and_no_others(name: str) -> None:
    """Vendors, case and separators do not matter, and no number is cut."""
    found = covered([name], PRODUCTS)

    assert len(found) == len(COVERED[name])
    assert all(any(each.endswith(end) for each in found) for end in COVERED[name])


def label(product: str) -> str:
    """Return a product as node labels have it."""
    return product.replace(" ", "-").replace("(R)", "")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("form", [str, str.lower, label, lambda each: label(each).replace("-", "_")])
def test_a_product_and_its_label_cover_each_other(product: str, form: object) -> None:
    """A full name always finds its own card, in each form."""
    assert callable(form)
    assert covers(form(product), product)
    assert covers(product, form(product))


@given(st.sampled_from(list(COVERED)), st.sampled_from(PRODUCTS), st.sampled_from(PRODUCTS))
def test_covering_is_transitive(name: str, between: str, product: str) -> None:
    """A name that covers a product covers all that the name of that product covers."""
    if covers(name, between) and covers(between, product):
        assert covers(name, product)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_compared(name: str, product: str) -> None:
    """No text is an error, and only texts without a word cover not themselves."""
    assert covers(name, product) in (True, False)
    words = any(letter.isalnum() for letter in name)
    assert covers(name, name) or not words or len(name.split()) != 1


@given(st.sampled_from(PRODUCTS), st.integers(0, 9))
def test_a_number_is_never_cut(product: str, digit: int) -> None:
    """A name with one more digit at its end is another model."""
    last = product.rsplit(maxsplit=1)[-1]
    if last[-1].isdigit():
        assert not covers(f"{product}{digit}", product)


def test_each_product_is_covered_by_few_others() -> None:
    """A product covers another one only if that is a variant of it."""
    found = {(one, other) for one, other in pairs(PRODUCTS, PRODUCTS) if one != other and covers(one, other)}

    assert found == {("NVIDIA H200", "NVIDIA H200 NVL"), ("AMD Instinct MI300X", "AMD Instinct MI300X OAM")}


def test_the_most_specific_name_wins() -> None:
    """The longest name that covers a product decides its price or weight."""
    assert most_specific(["A100", "NVIDIA", "A100-80GB", "T4"], "NVIDIA A100-SXM4-80GB") == "A100-80GB"
    assert most_specific(["H100"], "NVIDIA A100-SXM4-80GB") is None


def test_a_wrong_name_is_answered_with_similar_products() -> None:
    """The nearest products come first, those without any likeness not at all."""
    assert nearest("A1OO", ["NVIDIA A100-SXM4-80GB", "Tesla T4"]) == ["NVIDIA A100-SXM4-80GB"]
    assert nearest("H20O", ["NVIDIA H200", "NVIDIA A100-SXM4-80GB"]) == ["NVIDIA H200"]
    assert nearest("", ["Tesla T4"]) == []


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "NVIDIA A100-SXM4-80GB"),
        ("nvidia-h100-80gb", "NVIDIA H100 80GB HBM3"),
        ("nvidia-h100-mega-80gb", "NVIDIA H100 80GB HBM3"),
        ("nvidia-h200-141gb", "NVIDIA H200"),
        ("nvidia-tesla-t4", "Tesla T4"),
        ("nvidia-tesla-a100", "NVIDIA A100-SXM4-40GB"),
        ("nvidia-a100-80gb", "NVIDIA A100-SXM4-80GB"),
        ("nvidia-l4", "NVIDIA L4"),
        ("nvidia-b200", "NVIDIA B200"),
        ("nvidia-rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("AMD_Instinct_MI300X_OAM", "AMD Instinct MI300X OAM"),
    ],
)
def test_the_model_of_a_node_label_covers_the_cards_of_its_nodes(name: str, model: str) -> None:
    """Labels of feature discovery and of GKE name the product of the node."""
    assert covers(label_model(name), model)


@pytest.mark.parametrize(
    ("names", "vendor"),
    [
        (["A100"], "NVIDIA"),
        (["RTX2080TI"], "NVIDIA"),
        (["2080ti", "L40S"], "NVIDIA"),
        (["RTX-A6000"], "NVIDIA"),
        (["GH200", "b200", "V100-32GB", "T4"], "NVIDIA"),
        (["MI300X"], "AMD"),
        (["mi 250", "W7900 Radeon"], "AMD"),
        (["A100", "MI300X"], ""),
        (["Ascend910B3"], ""),
        (["TPU v5e"], ""),
        ([], ""),
    ],
)
def test_the_vendor_follows_from_the_names_of_models(names: list[str], vendor: str) -> None:
    """Names of one vendor's models say whose cards a job needs."""
    assert maker(names) == vendor
