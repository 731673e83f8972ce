"""Catalog of templates: the built-in ones, and those of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from seaway.adapters.kubernetes.templates.context import Exposure, TemplateOptions
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, ROUTES, Template, problems
from seaway.adapters.kubernetes.templates.runtime import NO_DRIVERS, Mounting
from seaway.adapters.kubernetes.templates.safety import MAX_BYTES, Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.domain.deployment import ADDRESS, PORT
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec
from seaway.domain.reasons import Reason

MAX_FILES = 200


def read_folder(folder: Path, rules: Rules, taken: Mapping[str, Template]) -> dict[str, Template]:
    """Read a folder of templates. Each template has the name of its file.

    Parameters
    ----------
    taken
        Templates whose names are reserved.

    Raises
    ------
    RejectedError
        When the folder cannot be read or a template is invalid, with all errors of all files.
    """
    templates: dict[str, Template] = {}
    errors: list[RejectedError] = []
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix in (".yaml", ".yml"))
        if len(files) > MAX_FILES:
            raise RejectedError(f"has {len(files)} templates, but {MAX_FILES} are the most", where=str(folder))
        for file in files:
            try:
                if file.stem in taken or file.stem in templates:
                    raise RejectedError("a template of this name exists already")
                if file.stat().st_size > MAX_BYTES:
                    raise RejectedError(f"is larger than {MAX_BYTES // 1024} KiB")
                templates[file.stem] = read_template(file.stem, file.read_text("utf-8"), rules)
            except (RejectedError, UnicodeDecodeError) as error:
                errors += _named(file.name, error)
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}", where=str(error.filename or folder)) from None
    if errors:
        raise RejectedError(errors[0].message, where=errors[0].where, also=tuple(errors[1:]))
    return templates


def _named(file: str, error: RejectedError | UnicodeDecodeError) -> list[RejectedError]:
    """Add the file's name to errors."""
    if isinstance(error, UnicodeDecodeError):
        return [RejectedError("is not UTF-8 text", where=file)]
    return [
        RejectedError(each.message, where=f"{file}: {each.where}" if each.where else file)
        for each in (error, *error.also)
    ]


class TemplateCatalog:
    """Catalog of all templates.

    Parameters
    ----------
    folder
        Folder of custom templates; None for none.
    through_karmada
        True if jobs are deployed through Karmada.
    default_image
        Image of jobs that specify none; if it is empty, such jobs are rejected.
    exposure
        Ways in which clients outside a cluster may reach jobs.
    mounting
        Volumes that jobs may have.

    Raises
    ------
    RejectedError
        When custom templates are invalid, with all their errors.
    """

    def __init__(
        self,
        folder: Path | None = None,
        rules: Rules | None = None,
        *,
        through_karmada: bool = False,
        default_image: str = "",
        exposure: Exposure | None = None,
        mounting: Mounting | None = None,
    ) -> None:
        own = read_folder(folder, rules or Rules(), BUILT_IN) if folder else {}
        exposure = exposure or Exposure()
        routes = tuple(kind for each, kind in ROUTES.items() if each in exposure.types)
        self.templates: Mapping[str, Template] = {
            name: replace(each, writes=(*each.writes, *routes)) for name, each in {**BUILT_IN, **own}.items()
        }
        self._through_karmada = through_karmada
        self._anywhere = TemplateOptions(
            _no_device, default_image=default_image, exposure=exposure, mounting=mounting or NO_DRIVERS
        )

    def purposes(self) -> Mapping[str, str]:
        """Return the purpose of each template by name."""
        return {name: template.purpose for name, template in self.templates.items()}

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with the traits of its template, or without traits if the template is unknown."""
        known = self.templates.get(spec.template)
        return spec.with_template_traits(
            single_cluster=known is not None and self._stays_together(spec, known),
            restarts=bool(known and known.restarts),
            ends_in_parts=bool(known and known.ends_in_parts),
        )

    def _stays_together(self, spec: JobSpec, known: Template) -> bool:
        """Report whether all replicas must be in one cluster.

        They must if their template says so, or if those in other clusters would get no address of replica 0.
        """
        if known.ranks and spec.ring:
            return False
        env, ranked = dict(spec.run.env), known.ranks and spec.template not in BUILT_IN
        unknown = ranked or (spec.meets and (not self._anywhere.exposure.ring or PORT in env))
        return known.single_cluster or (unknown and ADDRESS not in env)

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Return the errors of a job in its template; empty if the template is unknown."""
        known = self.templates.get(spec.template)
        if known is None:
            return ()
        found = problems(spec, self._anywhere, self.templates)
        if known.direct_only and self._through_karmada:
            says = Reason("directly_to_cluster", template=known.name)
            found.append(RejectedError(says, where="template"))
        return found


def _no_device(node: str, uuid: str) -> None:
    """Return no device: devices are unknown before placement."""
