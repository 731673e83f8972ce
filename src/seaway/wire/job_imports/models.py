"""Names of GPU models in other schedulers, such as ``A100-80GB``."""

from __future__ import annotations

import re

from seaway.wire.job_imports.converted import Converted, Result

SIZES = {"A100": ("40GB", "80GB"), "V100": ("16GB", "32GB")}
"""Models whose product names contain the size of their memory, with the sizes."""

_NAME = re.compile(r"([A-Z0-9]+(?:[-_ ](?!\d+GB?$)[A-Z0-9]+)*)(?:[-_ ](\d+)GB?)?", re.IGNORECASE)
_NO_GPUS = ("tpu", "inferentia", "trainium", "gaudi")


def put_model(out: Converted, name: str, models: list[str]) -> None:
    """Allow GPUs of some models, by names that `seaway.domain.gpu_models.covers` compares with products.

    Texts that cannot be models are refused. A size stays part of the name if product names contain it.
    """
    use: list[str] = []
    for text in models:
        match = _NAME.fullmatch(text.strip())
        if match is None or text.strip().lower().startswith(_NO_GPUS):
            out.refuse(name, f"{text!r} is not a model of a GPU")
            return
        model, size = match[1].upper().replace("_", "-"), match[2]
        if size and any(f"{size}GB" in SIZES.get(word, ()) for word in re.split("[- ]", model)):
            model = f"{model}-{size}GB"
        elif size:
            out.note(name, f"allows every {model}: its product names do not contain {size}GB", Result.CHANGED)
        use.append(model)
    out.keep(name, "resources.gpu_use_types", use, f"resources.gpu_use_types: GPUs of the model {' or '.join(use)}")
