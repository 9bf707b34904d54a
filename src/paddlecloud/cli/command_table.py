"""The command table: what `pdc --help` prints, what completion offers and where each command lives.

Nothing is imported to build it. A module named here exposes `add_commands(parsers)`, where `parsers.add_parser(name,
…)` gives an argparse parser that already knows the global flags, and sets `run=function` as a parser default;
`function(session, args)` returns an exit code or None for 0.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    name: str
    help: str
    module: str
    section: str
    takes: str = ""
    """What completion offers as arguments besides words between which they choose: objects (a kind, then names), jobs,
    jobs or pods, services, sets, models, tenants, images, nodes, runs of pipelines, the names of the kind before,
    files, or nothing."""


MACHINE, DECLARE, LOOK, ACT, TOOLS = "Machine", "Declare", "Look", "Act", "Tools"

_PKG = "paddlecloud.cli.commands."

COMMANDS: tuple[Command, ...] = (
    Command("up", "start the embedded platform and wait until it is ready", _PKG + "up", MACHINE),
    Command("down", "stop the embedded platform", _PKG + "up", MACHINE),
    Command("status", "show the embedded platform", _PKG + "up", MACHINE),
    Command("doctor", "check this machine and the API server, with a fix for each finding", _PKG + "doctor", MACHINE),
    Command("kubeconfig", "print the kubeconfig of the chosen context", _PKG + "kubeconfig", MACHINE),
    Command(
        "image", "build, list, remove, export and import images of this machine", _PKG + "image", MACHINE, "images"
    ),
    Command(
        "node", "add and remove nodes of the embedded platform, lose and restore them", _PKG + "node", MACHINE, "nodes"
    ),
    Command(
        "tenant",
        "people with a namespace, quota and queue: create, change, list, count",
        _PKG + "tenant",
        MACHINE,
        "tenants",
    ),
    Command("notebooks", "JupyterHub for tenants: start it, let people sign in", _PKG + "notebooks", MACHINE),
    Command("apply", "create or change objects from files", _PKG + "apply", DECLARE, "files"),
    Command("delete", "delete objects by file, name or label", _PKG + "delete", DECLARE, "objects"),
    Command("diff", "show what apply would change", _PKG + "diff", DECLARE, "files"),
    Command("run", "run a program on workers, without YAML, and follow it", _PKG + "run", DECLARE, "files"),
    Command("serve", "serve a model: a folder, an archive, or NAME:VERSION", _PKG + "serve", DECLARE, "files"),
    Command("model", "push, pull, list, compare, tag and remove versions of models", _PKG + "model", DECLARE, "models"),
    Command("get", "list objects, in a table or any other format", _PKG + "get", LOOK, "objects"),
    Command("ps", "list PaddleJobs (get pdj)", _PKG + "get", LOOK, "jobs"),
    Command("describe", "why an object is as it is, then its details and events", _PKG + "describe", LOOK, "objects"),
    Command(
        "explain",
        "verdict on an object (pdj/x), or the documentation of a field (pdj.spec)",
        _PKG + "explain",
        LOOK,
        "objects",
    ),
    Command(
        "trace",
        "where a model came from and where it went: data, job, version, services",
        _PKG + "trace",
        LOOK,
        "jobs",
    ),
    Command("logs", "logs of a job or pod, merged and prefixed by rank", _PKG + "logs", LOOK, "jobs or pods"),
    Command("events", "list events, oldest first", _PKG + "events", LOOK),
    Command("wait", "wait for a condition, a value or a deletion", _PKG + "wait", LOOK, "objects"),
    Command("top", "what nodes, pods and jobs use now, and how far training is", _PKG + "top", LOOK, "names"),
    Command("dashboard", "jobs, queues, nodes and services as pages in a browser", _PKG + "dashboard", LOOK),
    Command("visualdl", "show the curves of a job in a browser, while it trains", _PKG + "visualdl", LOOK, "jobs"),
    Command("metrics", "the scalars that a job writes with VisualDL, and their curves", _PKG + "metrics", LOOK, "jobs"),
    Command("scale", "set the number of workers of a job, or of replicas", _PKG + "scale", ACT, "jobs"),
    Command("suspend", "stop the pods of a job and keep the job", _PKG + "scale", ACT, "jobs"),
    Command("resume", "start a suspended job", _PKG + "scale", ACT, "jobs"),
    Command("retry", "run a finished or failed job, or try a failed service, again", _PKG + "retry", ACT, "jobs"),
    Command("promote", "make the canary of a PaddleService its default", _PKG + "promote", ACT, "services"),
    Command("rollback", "withdraw a canary, or go back to the default before", _PKG + "promote", ACT, "services"),
    Command("exec", "run a program in a container", _PKG + "exec", ACT, "jobs or pods"),
    Command("cp", "copy files to or from a container", _PKG + "cp", ACT, "files"),
    Command("port-forward", "reach a port of a pod from here", _PKG + "port_forward", ACT, "jobs or pods"),
    Command(
        "samplejob",
        "import, warm up, clear or remove data of a SampleSet, with live progress",
        _PKG + "samplejob",
        ACT,
        "sets",
    ),
    Command(
        "pipeline",
        "run pipelines of kfp and Argo; show, compare, retry, stop and schedule their runs",
        _PKG + "pipeline",
        DECLARE,
        "runs",
    ),
    Command("suite", "workflows of Paddle's model suites: make a folder, run it", _PKG + "suite", DECLARE, "files"),
    Command(
        "sampleset",
        "how much cache a SampleSet needs; list and remove the data of deleted ones",
        _PKG + "sampleset",
        TOOLS,
        "sets",
    ),
    Command(
        "sample-data",
        "generate a small data set in the format of a Paddle suite",
        _PKG + "sample_data",
        TOOLS,
        "files",
    ),
    Command("simulate", "try the scheduler on a load, or on the cluster as it is", _PKG + "simulate", TOOLS),
    Command("install", "install or upgrade the controllers on a cluster", _PKG + "install", MACHINE),
    Command("uninstall", "take the controllers away, and keep what users made", _PKG + "install", MACHINE),
    Command("crds", "print the CustomResourceDefinitions of PaddleCloud", _PKG + "crds", TOOLS),
    Command("api-resources", "list the kinds the server offers", _PKG + "api_resources", TOOLS),
    Command("version", "print the versions of pdc and of the server", _PKG + "version", TOOLS),
    Command("completion", "print a completion script for bash, zsh or fish", _PKG + "completion", TOOLS),
)

HIDDEN: tuple[Command, ...] = (Command("__complete", "candidates for a completion script", _PKG + "complete", TOOLS),)


def find(name: str) -> Command | None:
    for command in COMMANDS + HIDDEN:
        if command.name == name:
            return command
    return None
