"""Catalog of templates: the built-in ones, and those of a folder."""

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
    """Catalog of all templates.

    Parameters
    ----------
    folder
        Folder of custom templates; None for none.
    through_karmada
        True if jobs are deployed through Karmada.
    default_image
        Image of jobs that name none; such jobs are rejected if it is empty.

    Raises
    ------
    RejectedError
        With all errors of the custom templates.
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
        """Return the purpose of each template by name."""
        return {name: template.purpose for name, template in self.templates.items()}

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with the traits of its template, or without traits if the template is unknown."""
        known = self.templates.get(spec.template)
        return spec.with_template_traits(
            single_cluster=bool(known and known.single_cluster), restarts=bool(known and known.restarts)
        )

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Return the errors of a job in its template; none if the template is unknown."""
        known = self.templates.get(spec.template)
        if known is None:
            return ()
        found = problems(spec, self._anywhere, self.templates)
        if known.direct_only and self._through_karmada:
            says = f"a {known.name} must be sent directly to its cluster: Karmada would undo what is changed there"
            found.append(RejectedError(says, where="template"))
        return found


def _no_device(node: str, uuid: str) -> None:
    """Return no device: devices are unknown before placement."""
