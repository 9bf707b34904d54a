"""`pdc serve`: a model behind a URL, without YAML. Makes a PaddleService, waits until it answers, says how to ask.

MODEL is a folder with inference.json and inference.pdiparams (or model.onnx), the URL of such a folder as .tar.gz, a
version of a model (NAME:VERSION, NAME@ALIAS; pdc model ls), or NAME:VERSION in a model store. On the embedded platform
a folder of this machine is served as it lies there, and a new version put into it is taken up by itself. The version of
an alias stays when the alias is moved, unless --follow is given; the same command again takes up what it points to
then. Another model takes the place of a service only when --name names it.

Exit codes: 0 it answers; 100 it cannot be served; 3 there is no such folder or model; 4 another model has the name; 5
it is refused, and nothing is left of it; 124 time ran out. What was made otherwise stays: pdc delete pds/NAME. Where
the new model of a service does not start, the earlier one goes on serving: pdc rollback NAME.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from paddlecloud.api.paddleservice import named_model
from paddlecloud.cli.commands.wait import Goal, wait_for
from paddlecloud.cli.failures import (
    CONFLICT,
    INVALID,
    JOB_FAILED,
    NOT_FOUND,
    OK,
    CliError,
    InputError,
    UsageError,
    attempting,
)
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.objects.embedded import data_of, is_embedded
from paddlecloud.cli.objects.model_store import attempting as naming
from paddlecloud.cli.objects.outcome import Outcome
from paddlecloud.cli.objects.placing import ObjectRef, of_object
from paddlecloud.cli.parsing import Parsers, duration, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import ApiError, Forbidden, NotFound
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import MODELS, PADDLESERVICES, Object
from paddlecloud.platform import endpoint
from paddlecloud.sdk import model_objects
from paddlecloud.sdk.outcome import SERVICE_REFUSALS, awaits_retry, is_behind, retry_patch, service_failure
from paddlecloud.sdk.ownership import SERVE_MANAGER
from paddlecloud.sdk.serving import service_of

REFUSED = "refused"


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("serve", description=__doc__, usage="pdc serve MODEL [flags]\n")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--name", metavar="NAME", help="of the service (default: the model's)")
    parser.add_argument("--follow", action="store_true", help="roll out what NAME@ALIAS points to when it is moved")
    parser.add_argument("--min", type=number(0), metavar="N", help="pods kept without requests (default 0)")
    parser.add_argument("--max", type=number(1), metavar="N", help="pods at most (default: no limit)")
    parser.add_argument(
        "--allow-model-code", action="store_true", help="run the processor of a model that is fetched from elsewhere"
    )
    parser.add_argument("--allow-plain-http", action="store_true", help="fetch over http:// without #sha256=HEX")
    parser.add_argument("--timeout", type=duration, default=120.0, metavar="TIME", help="30s, 5m (default 2m)")
    parser.add_argument("-d", "--detach", action="store_true", help="do not wait until it answers")
    parser.add_argument("--dry-run", action="store_true", help="print what would be applied")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    output.check(fmt)
    with attempting("serve the model"):
        wanted = service_of(
            _reference(session, args.model),
            name=args.name or _name(args.model),
            namespace=session.namespace,
            follow=args.follow,
            scale={"minScale": args.min, "maxScale": args.max},
            allow={"allowModelCode": args.allow_model_code, "allowPlainHttp": args.allow_plain_http},
        )
        if args.dry_run:
            return _show(session, wanted, fmt, "would be applied (dry run)")
        before = _before(session, wanted)
        made = _taken_up(session, _apply(session, wanted, before))
        if args.detach:
            return _show(session, made, fmt, "applied")
        place = of_object(PADDLESERVICES, made)
        ended = wait_for(session, place, Goal("served", _answers), timeout=args.timeout)
        if ended.exit_code != OK:
            if ended.state == REFUSED and before is None:
                raise _withdrawn(session, place, ended)
            _say_why_not(session, place, ended, before)
            return ended.exit_code
        served = session.api.do(session.api.client.get(PADDLESERVICES, place.name, place.namespace))
    if fmt.name:
        return _show(session, served, fmt, "")
    _say_how(session, served)
    return OK


def _reference(session: Session, model: str) -> str:
    """What the server is given: a folder here is looked at first, and is of use to this machine's pods alone."""
    if "://" in model or ("/" not in model and not Path(model).exists()):
        if "://" not in model:
            _check_name(session, model)
        return model
    if "/" not in model and _is_model(session, model):
        session.note(
            f"{model} is a folder here, which is served, and a model too, which `pdc serve {model}@latest` serves"
        )
    from paddlecloud.serving import model_folder
    from paddlecloud.serving.errors import ModelError

    try:
        model_folder.find(Path(model))
    except ModelError as error:
        raise InputError("that is no model", why=str(error), next="pdc serve --help") from error
    if not is_embedded(session):
        raise UsageError(
            f"{model} lies on this machine, where the pods of the cluster do not see it",
            next="put it behind a URL as .tar.gz, or `pdc up` for a platform here",
        )
    return Path(model).resolve().as_uri()


def _is_model(session: Session, name: str) -> bool:
    try:
        return session.api.do(session.api.client.find(MODELS, name, session.namespace)) is not None
    except ApiError:
        return False  # a cluster without the kind, or without the right to look


def _check_name(session: Session, model: str) -> None:
    """A model of the namespace, or else of a model store."""
    if problem := named_model.problem(model):
        raise InputError("that is no name of a model", why=problem, next="pdc model ls")
    meant, client = named_model.hub_reference(model), session.api.client
    try:
        found = session.api.do(client.find(MODELS, meant.model, session.namespace)) if meant is not None else None
    except Forbidden:
        return  # the controller may see what this user may not
    except NotFound:
        found = None  # a cluster without the kind
    if meant is not None and found is not None:
        with naming(f"serve {model}", next=f"pdc model ls {meant.model}"):
            version = session.api.do(model_objects.resolve(client, session.namespace, meant))
            session.api.do(model_objects.get_version(client, session.namespace, meant.model, version))
        return
    if meant is not None and "@" in model:
        raise CliError(
            f"there is no model {meant.model} in namespace {session.namespace}",
            next=f"pdc model ls, or pdc model push {meant.model} FOLDER",
            exit_code=NOT_FOUND,
            missing=(meant.model, ("models",)),
        )
    _refuse_without_store(session, model)


def _refuse_without_store(session: Session, model: str) -> None:
    """NAME and NAME:VERSION are models in the model store; on a machine's platform without one, NAME means a folder."""
    if not is_embedded(session):
        return
    platform = endpoint.find(data_of(session))
    if platform is not None and platform.model_store:
        return
    if ":" in model:
        name = model.partition(":")[0]
        raise CliError(
            f"there is no model {name} in namespace {session.namespace}, nor a model store",
            why=f"the platform was started without {endpoint.MODEL_ENDPOINT}",
            next=f"pdc model ls; or with the URL of a store: pdc down, then {endpoint.MODEL_ENDPOINT}=URL pdc up",
            exit_code=NOT_FOUND,
            missing=(name, ("models",)),
        )
    folders = [entry.name for entry in Path().iterdir() if entry.is_dir()]
    near = question(model, folders)
    raise CliError(
        f"there is no folder {model} here",
        why=near or f"nor a model {model} in namespace {session.namespace} (pdc model ls), nor a model store",
        next="pdc serve ./FOLDER",
        exit_code=NOT_FOUND,
        missing=None if near else (model, ("models",)),
    )


def _name(model: str) -> str:
    """`./out/My_Digits` → `my-digits`, `https://host/digits.tar.gz` → `digits`, `digits:v3`, `digits@x` → `digits`."""
    model = model.partition("#")[0] if "://" in model else model
    last = model.rstrip("/").rpartition("/")[2] if "/" in model else _model_of(model)
    if last in ("", ".", ".."):
        last = Path(model).resolve().name
    plain = re.sub(r"\.(tar\.gz|tgz|tar)$", "", last).lower()
    name = re.sub(r"[^a-z0-9-]+", "-", plain).strip("-")[:40]
    if not name:
        raise UsageError(f"{model} gives no name for the service", next=f"pdc serve {model} --name NAME")
    return name


def _model_of(reference: str) -> str:
    return re.split("[:@]", reference, maxsplit=1)[0]


def _taken_up(session: Session, service: Object) -> Object:
    """A service that keeps the version of an alias which was moved takes up the one it points to now."""
    if (service.get("spec") or {}).get("follow") or not is_behind(service):
        return service
    meta = service["metadata"]
    patch = retry_patch(service, time.time())
    return session.api.do(
        session.api.client.patch(PADDLESERVICES, meta["name"], patch, namespace=meta["namespace"], kind="merge")
    )


def _apply(session: Session, wanted: Object, before: Object | None) -> Object:
    client, name, namespace = session.api.client, wanted["metadata"]["name"], wanted["metadata"]["namespace"]
    default = ((before or {}).get("spec") or {}).get("default") or {}
    if default.get("model"):
        wanted = _as_default(wanted)
    elif default:  # an image, which excludes a model
        change = {"spec": {"default": None, "model": wanted["spec"]["model"]}}
        session.api.do(client.patch(PADDLESERVICES, name, change, namespace=namespace))
    applied = client.patch(
        PADDLESERVICES, name, wanted, namespace=namespace, kind="apply", field_manager=SERVE_MANAGER, force=True
    )
    return session.api.do(applied)


def _as_default(wanted: Object) -> Object:
    """The model as `spec.default.model`: the file that the service was made from writes that, and still applies."""
    others = {field: value for field, value in wanted["spec"].items() if field != "model"}
    return {**wanted, "spec": {"default": {"model": wanted["spec"]["model"]}, **others}}


def _before(session: Session, wanted: Object) -> Object | None:
    """The service that has the name already. Another model does not take its place unless --name says so."""
    name, model = wanted["metadata"]["name"], wanted["spec"]["model"]
    try:
        found = session.api.do(session.api.client.get(PADDLESERVICES, name, session.namespace))
    except NotFound:
        return None
    spec = found.get("spec") or {}
    served = str((spec.get("default") or spec).get("model") or "")
    named = named_model.is_name(model) and named_model.is_name(served)
    if served == model or (named and _model_of(served) == _model_of(model)):
        return found
    if not session.args.name:
        raise CliError(
            f"there is already a service {name}, of {f'the model {served}' if served else 'endpoints of its own'}",
            next=f"--name with another name, or --name {name} to change what it serves",
            exit_code=CONFLICT,
            reason="AlreadyExists",
        )
    session.note(f"{output.name_of(found)} served {served or 'endpoints of its own'} until now")
    return found


def _say_why_not(session: Session, place: ObjectRef, ended: Outcome, before: Object | None) -> None:
    why, look = ended.message or ended.state, f"pdc describe pds/{place.name}"
    if before is None or not outcome.is_true(before, "Ready"):
        session.note(f"error: {place.display} does not answer: {why}")
        session.note(f"next:  {look}; to remove it: pdc delete pds/{place.name}")
        return
    present = session.api.do(session.api.client.get(PADDLESERVICES, place.name, place.namespace))
    serving = outcome.standing_in(present)
    session.note(f"error: the new revision of {place.display} does not answer: {why}")
    if serving:
        session.note(f"       {serving} still serves")
    session.note(f"next:  {look}; to go back to what was served: pdc rollback {place.name}")


def _withdrawn(session: Session, place: ObjectRef, ended: Outcome) -> CliError:
    """The controller refused what this command made: nothing of it was ever served, and nothing is left of it."""
    session.api.do(session.api.client.delete(place.resource, place.name, namespace=place.namespace))
    return CliError(
        f"{place.display} was refused and is deleted again", why=ended.message, exit_code=INVALID, reason="Refused"
    )


def _answers(service: Object | None) -> Outcome | None:
    """Ready, or known not to become so."""
    if service is None or awaits_retry(service):
        return None
    if (failure := service_failure(service, "Ready")) is not None:
        return Outcome(REFUSED if failure.reason in SERVICE_REFUSALS else "failed", JOB_FAILED, failure.message)
    ready = outcome.condition(service, "Ready") or {}
    current = ready.get("observedGeneration") == service["metadata"].get("generation")
    return Outcome("served", OK) if current and ready.get("status") == "True" else None


def _show(session: Session, service: Object, fmt: output.Format, what: str) -> int:
    if fmt.name:
        output.print_objects(session, [output.without_managed_fields(service)], fmt, single=True)
    else:
        session.print(f"{output.name_of(service)} {what}")
    return OK


def _say_how(session: Session, service: Object) -> None:
    status, name = service["status"], service["metadata"]["name"]
    url = status["url"]
    session.print(f"{name} is served at {url}")
    if by_name := status.get("nameUrl"):
        session.print(f"by name, for browsers and curl: {by_name}")
    if model := (status.get("default") or {}).get("model"):
        session.print(f"it serves {model}")
    session.print("try it with an example of its own:")
    session.print(f"  curl -s {url}/v2/models/{name}/example | curl -s -d @- {url}/v2/models/{name}/infer")
    session.print(f"to stop: pdc delete pds/{name}")
