"""Names of GPU models in other schedulers, such as ``A100-80GB``, as rules on product names."""

from __future__ import annotations

import re

from seaway.wire.job_imports.converted import Converted

MODELS = (
    "K80", "P4", "P40", "P100", "V100", "T4", "T400", "A2", "A10", "A10G", "A16", "A30", "A40", "A100", "A800", "L4",
    "L20", "L40", "L40S", "H20", "H100", "H200", "H800", "GH200", "B200", "B300", "GB200", "GB300", "A2000", "A4000",
    "A4500", "A5000", "A6000", "MI50", "MI100", "MI210", "MI250", "MI300", "MI300X", "MI325X", "MI350X", "MI355X",
)  # fmt: skip
"""Names of models, some of which contain others."""

SIZES = {"A100": ("40GB", "80GB"), "V100": ("16GB", "32GB")}
"""Sizes of models that exist with several amounts of memory, as product names contain them."""

_NAME = re.compile(
    r"(?:NVIDIA[- ]|TESLA[- ])*([A-Z0-9]+(?:[- ](?!\d+GB?$)[A-Z0-9]+)*)(?:[-_ ](\d+GB?))?", re.IGNORECASE
)


def put_model(out: Converted, name: str, models: list[str]) -> None:
    """Set the rules on product names that select one of some models; refuse models without rules.

    A rule selects product names that contain the model. It excludes longer names, such as A100 for A10, and other
    sizes, such as 40GB for ``A100-80GB``.
    """
    use: list[str] = []
    avoid: list[str] = []
    for text in models:
        match = _NAME.fullmatch(text.strip())
        if match is None or text.lower().startswith(("tpu", "inferentia", "trainium", "gaudi")):
            out.refuse(name, f"{text!r} is not a model of a GPU")
            return
        model, size = match[1].upper(), (match[2] or "").upper().removesuffix("B")
        sizes = SIZES.get(re.split("[- ]", model)[0], ())
        use.append(model)
        avoid += [each for each in MODELS if model in each and each != model]
        avoid += [each for each in sizes if f"{size}B" in sizes and each != f"{size}B"]
    out.keep(name, "resources.gpu_use_types", use, f"resources.gpu_use_types: product names with {' or '.join(use)}")
    if excluded := [each for each in dict.fromkeys(avoid) if each not in use]:
        out.keep(name, "resources.gpu_avoid_types", excluded)
