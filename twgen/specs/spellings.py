"""Old spellings of fields: each still works, and is unknown to all that follows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twgen.model.problem import Finding
from twgen.specs import kinds


@dataclass(frozen=True, slots=True)
class _Renaming:
    old: tuple[str, ...]
    new: tuple[str, ...]


def _renaming(old: str, new: str) -> _Renaming:
    return _Renaming(tuple(old.split(".")), tuple(new.split(".")))


_RENAMINGS: dict[str, tuple[_Renaming, ...]] = {
    kinds.WORKER: (
        _renaming("spec.cutover", "spec.rollout"),
        _renaming("spec.workerOptions.connection", "spec.workerOptions.connectionRef.name"),
        _renaming("spec.workerOptions.customBuildID", "spec.workerOptions.unsafeCustomBuildID"),
        _renaming("spec.workerOptions.buildID", "spec.workerOptions.unsafeCustomBuildID"),
    ),
    kinds.ATTACHED: (
        _renaming("spec.temporalWorkerDeploymentRef", "spec.workerDeploymentRef"),
        _renaming("spec.workerRef", "spec.workerDeploymentRef"),
        _renaming("spec.object", "spec.template"),
    ),
}


@dataclass(frozen=True, slots=True)
class Modern:
    """A document in today's spelling, and the prefixes of paths that its file spells otherwise."""

    value: dict[str, Any]
    written_as: Mapping[str, str]
    problems: tuple[Finding, ...] = ()


def modernise(kind: kinds.Kind, value: dict[str, Any]) -> Modern:
    """The same document in today's spelling; the given one is left alone."""
    written_as: dict[str, str] = {}
    problems: list[Finding] = []
    for renaming in _RENAMINGS.get(kind.name, ()):
        found = _at(value, renaming.old)
        if found is None:
            continue
        old, new = ".".join(renaming.old), ".".join(renaming.new)
        if _at(value, renaming.new) is not None:
            problems.append(Finding(old, f"is the old spelling of {new}, which is there too: keep one"))
            value = _without(value, renaming.old)
            continue
        value = _put(_without(value, renaming.old), renaming.new, found)
        written_as[new] = old
    return Modern(value, written_as, tuple(problems))


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _without(value: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: item for name, item in value.items() if name != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}


def _put(value: Any, path: tuple[str, ...], item: Any) -> dict[str, Any]:
    fields = value if isinstance(value, dict) else {}
    return {**fields, path[0]: _put(fields.get(path[0]), path[1:], item) if len(path) > 1 else item}
