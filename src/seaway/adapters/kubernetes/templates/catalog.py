"""What jobs can become in real clusters: built-in templates, and those of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from seaway.adapters.kubernetes.templates.context import TemplateOptions
from seaway.adapters.kubernetes.templates.folder import read_folder
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, Template, problems
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec


class TemplateCatalog:
    """The templates.

    Parameters
    ----------
    folder
        People's own templates; None for none.
    through_karmada
        Whether jobs go through Karmada.
    default_image
        For jobs that name none; without it those are rejected.

    Raises
    ------
    RejectedError
        With everything that is wrong with any of those.
    """

    def __init__(
        self,
        folder: Path | None = None,
        rules: Rules | None = None,
        *,
        through_karmada: bool = False,
        default_image: str = "",
    ) -> None:
        own = read_folder(folder, rules or Rules(), BUILT_IN) if folder else {}
        self.templates: Mapping[str, Template] = {**BUILT_IN, **own}
        self._through_karmada = through_karmada
        self._anywhere = TemplateOptions(_no_device, default_image=default_image)

    def purposes(self) -> Mapping[str, str]:
        """Return what each is for, by name."""
        return {name: template.purpose for name, template in self.templates.items()}

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with what its template says of it; nothing is said by a name not known."""
        known = self.templates.get(spec.template)
        return spec.with_template_traits(
            single_cluster=bool(known and known.single_cluster), restarts=bool(known and known.restarts)
        )

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Say what keeps a job from becoming what it names; nothing for a name not known."""
        known = self.templates.get(spec.template)
        if known is None:
            return ()
        found = problems(spec, self._anywhere, self.templates)
        if known.direct_only and self._through_karmada:
            says = f"a {known.name} has to go straight into its cluster: Karmada would undo what is changed there"
            found.append(RejectedError(says, where="template"))
        return found


def _no_device(node: str, uuid: str) -> None:  # none is looked at before there is a place
    """Say that a device is not known."""
