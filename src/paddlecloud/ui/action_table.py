"""Which actions objects of which section have. To add one, add a row."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.api.model.reference import LATEST
from paddlecloud.cli.objects import canary, workflow_steps
from paddlecloud.kube.argo import CRON_WORKFLOWS, WORKFLOWS
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, PADDLEJOBS, PADDLESERVICES, SAMPLESETS, Object, Resource
from paddlecloud.kube.yamlio import dump
from paddlecloud.pipelines.runs import states
from paddlecloud.sdk.outcome import ending, service_failure
from paddlecloud.ui import run_rows
from paddlecloud.ui.actions import Action, Field, Values

MOST_PARAMETERS = 24
"""Of a run, in the form that begins another: forms of a page have at most `forms.MOST_FIELDS`."""
PRODUCTION = "production"
SHORT = {"paddleservice": "pds"}
"""Of kinds whose long name means another group's, too."""


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _subject(obj: Object) -> str:
    kind = str(obj["kind"]).lower()
    return f"{SHORT.get(kind, kind)}/{_name(obj)}"


def _suspended(obj: Object) -> bool:
    return bool((obj.get("spec") or {}).get("suspend"))


def _canary(service: Object) -> Object:
    return (service.get("spec") or {}).get("canary") or {}


def _aliases(model: Object) -> dict[str, str]:
    return (model.get("spec") or {}).get("aliases") or {}


def _chosen_aliases(model: Object) -> tuple[str, ...]:
    """Without the one that every push moves."""
    return tuple(sorted(alias for alias in _aliases(model) if alias != LATEST))


def _reason(values: Values) -> list[str]:
    return [f"--reason={values['reason']}"] if values["reason"] else []


def _promotion_fields(model: Object) -> tuple[Field, ...]:
    aliases = _chosen_aliases(model)
    first = PRODUCTION if PRODUCTION in aliases or not aliases else aliases[0]
    return (
        Field("version", _aliases(model).get(LATEST, ""), required=True),
        Field("alias", first, tuple(dict.fromkeys((PRODUCTION, *aliases))), required=True),
        Field("reason"),
    )


def _rollback_fields(model: Object) -> tuple[Field, ...]:
    aliases = _chosen_aliases(model)
    first = PRODUCTION if PRODUCTION in aliases else next(iter(aliases), "")
    return Field("alias", first, aliases, required=True), Field("reason")


def _waits(run: Object) -> bool:
    """For somebody: as a whole, or at a step."""
    return not states.is_over(run) and (
        _suspended(run) or workflow_steps.suspended(workflow_steps.steps_of(run)) is not None
    )


def _parameter_fields(run: Object) -> tuple[Field, ...]:
    """Values that were cut are left to the command line: the form would send the beginning alone."""
    given = [(name, value) for name, value in run_rows.parameters(run) if len(value) < run_rows.LONGEST]
    return tuple(Field(f"p.{name}", value, label=name) for name, value in given[:MOST_PARAMETERS])


def _resubmission(run: Object, values: Values) -> list[str]:
    """With those values alone that differ: the others stay as they are, whatever their type."""
    fields = _parameter_fields(run)
    changed = [f"{one.label}={values[one.name]}" for one in fields if values[one.name] != one.default.strip()]
    return ["pipeline", "resubmit", _name(run), "-d", *(f"--parameter={each}" for each in changed)]


_DELETE = Action("delete", lambda obj, _: ["delete", _subject(obj)], lambda _: True, destroys=True)
_JOB_ACTIONS = (
    Action(
        "suspend",
        lambda obj, _: ["suspend", _subject(obj)],
        lambda obj: ending(obj) is None and not _suspended(obj),
        change=lambda _obj, _values: "spec:\n  suspend: true",
        undo="resume",
    ),
    Action(
        "resume",
        lambda obj, _: ["resume", _subject(obj)],
        lambda obj: ending(obj) is None and _suspended(obj),
        change=lambda _obj, _values: "spec:\n  suspend: false",
        undo="suspend",
    ),
    Action("retry", lambda obj, _: ["retry", _subject(obj)], lambda obj: ending(obj) is not None),
    _DELETE,
)
_SERVICE_ACTIONS = (
    Action(
        "promote",
        lambda service, _: ["promote", _name(service)],
        lambda service: bool(_canary(service)),
        change=lambda service, _: dump({"spec": canary.promotion(service, _canary(service))}),
        undo="rollback",
    ),
    Action(
        "rollback",
        lambda service, _: ["rollback", _name(service)],
        lambda service: bool(_canary(service)) or int(service["metadata"].get("generation") or 0) > 1,
        change=lambda service, _: dump({"spec": canary.WITHDRAWAL}) if _canary(service) else "",
    ),
    Action(
        "retry",
        lambda service, _: ["retry", _subject(service)],
        lambda service: service_failure(service, "Ready") is not None,
    ),
    _DELETE,
)
_MODEL_ACTIONS = (
    Action(
        "promote",
        lambda model, values: [
            *("model", "promote", f"{_name(model)}:{values['version']}"),
            *(f"--to={values['alias']}", *_reason(values)),
        ],
        lambda model: bool(_aliases(model)),
        change=lambda _, values: dump({"spec": {"aliases": {values["alias"]: values["version"]}}}),
        undo="rollback",
        fields=_promotion_fields,
    ),
    Action(
        "rollback",
        lambda model, values: ["model", "rollback", f"{_name(model)}@{values['alias']}", *_reason(values)],
        lambda model: bool(_chosen_aliases(model)),
        fields=_rollback_fields,
    ),
    Action("delete", lambda model, _: ["model", "rm", _name(model)], lambda _: True, destroys=True),
)
_VERSION_ACTIONS = (
    Action(
        "delete",
        lambda version, _: ["model", "rm", _name(version).replace(".", ":", 1)],
        lambda _: True,
        destroys=True,
    ),
)
_RUN_ACTIONS = (
    Action("resume", lambda run, _: ["pipeline", "resume", _name(run)], _waits),
    Action(
        "suspend",
        lambda run, _: ["suspend", _subject(run)],
        lambda run: not states.is_over(run) and not _suspended(run),
        change=lambda _run, _values: "spec:\n  suspend: true",
        undo="resume",
    ),
    Action(
        "stop",
        lambda run, _: ["pipeline", "stop", _name(run)],
        lambda run: not states.is_over(run) and not (run.get("spec") or {}).get("shutdown"),
        change=lambda _run, _values: "spec:\n  shutdown: Stop",
        undo="retry-failed",
    ),
    Action(
        "retry-failed",
        lambda run, _: ["pipeline", "retry", _name(run), "-d"],
        lambda run: states.phase_of(run) in ("Failed", "Error"),
    ),
    Action("resubmit", _resubmission, lambda _: True, fields=_parameter_fields),
    _DELETE,
)
_SCHEDULE_ACTIONS = (
    Action(
        "suspend",
        lambda cron, _: ["suspend", _subject(cron)],
        lambda cron: not _suspended(cron),
        change=lambda _cron, _values: "spec:\n  suspend: true",
        undo="resume",
    ),
    Action(
        "resume",
        lambda cron, _: ["resume", _subject(cron)],
        _suspended,
        change=lambda _cron, _values: "spec:\n  suspend: false",
        undo="suspend",
    ),
    Action("delete", lambda cron, _: ["delete", _subject(cron), "--cascade=orphan"], lambda _: True, destroys=True),
)
"""Without the schedule its runs stay, with their logs and artifacts."""

ACTIONS: Mapping[str, tuple[Resource, tuple[Action, ...]]] = {
    "jobs": (PADDLEJOBS, _JOB_ACTIONS),
    "models": (MODELS, _MODEL_ACTIONS),
    "modelversions": (MODELVERSIONS, _VERSION_ACTIONS),
    "pipelines": (WORKFLOWS, _RUN_ACTIONS),
    "samplesets": (SAMPLESETS, (_DELETE,)),
    "schedules": (CRON_WORKFLOWS, _SCHEDULE_ACTIONS),
    "services": (PADDLESERVICES, _SERVICE_ACTIONS),
}
"""First segment of the page's path → the kind of its objects, and what can be done to them."""


def offered(section: str, obj: Object) -> list[Action]:
    return [action for action in ACTIONS[section][1] if action.offered(obj)]


def find(section: str, name: str) -> tuple[Resource, Action] | None:
    resource, actions = ACTIONS.get(section, (None, ()))
    action = next((action for action in actions if action.name == name), None)
    return (resource, action) if resource is not None and action is not None else None
