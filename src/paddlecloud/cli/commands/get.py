"""`pdc get` and `pdc ps`: objects as tables or in any other format, once or as they change."""

from __future__ import annotations

import argparse
import sys
import time

from paddlecloud.cli.failures import NOT_FOUND, CliError, UsageError, attempting
from paddlecloud.cli.objects import suggestions, targets
from paddlecloud.cli.objects.targets import Target
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, add_selectors
from paddlecloud.cli.render import output, server_table
from paddlecloud.cli.render.output import Format
from paddlecloud.cli.render.server_table import Shape, Table
from paddlecloud.cli.render.table import Printer
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import Expired, Gone, NotFound, not_found
from paddlecloud.kube.resource import PADDLEJOBS, Object

REPORTED = ("Progress", "ETA")
"""Columns that `ps` shows as soon as a job reports them, and `get` in its wide output."""

REFUSED = "Valid"
"""The column that is shown as soon as the spec of any object is refused, and otherwise in the wide output."""

USAGE = "pdc get KIND [NAME…], KIND/NAME… or KIND,KIND"


def add_commands(parsers: Parsers) -> None:
    get = parsers.add_parser("get")
    get.add_argument("words", nargs="*", metavar="KIND [NAME…]", help="KIND, KIND NAME…, KIND/NAME… or KIND,KIND")
    _add_flags(get)
    get.set_defaults(run=run)
    ps = parsers.add_parser("ps")
    ps.add_argument("words", nargs="*", metavar="JOB", help="names of PaddleJobs (default: all)")
    _add_flags(ps)
    ps.set_defaults(run=run_ps)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    add_all_namespaces(parser)
    add_selectors(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="go on printing what changes, until Ctrl-C")
    parser.add_argument("--sort-by", metavar="PATH", help="JSONPath to order by: .metadata.creationTimestamp")
    parser.add_argument("--no-headers", action="store_true", help="leave the header line out")
    parser.add_argument("--show-labels", action="store_true", help="add a column with all labels")
    parser.add_argument(
        "-L", "--label-columns", action="append", default=[], metavar="KEY", help="add a column per label"
    )
    parser.add_argument("--ignore-not-found", action="store_true", help="a missing object is no error")
    parser.add_argument(
        "--show-managed-fields", action="store_true", help="keep metadata.managedFields in json and yaml"
    )


def run_ps(session: Session, args: argparse.Namespace) -> int:
    with attempting(f"get {' '.join(args.words)}"):
        names = [targets.name_in(session.api, word, PADDLEJOBS) for word in args.words]
    args.words = ["pdj", *names]
    return run(session, args)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, output.TABLES)
    targets.parse(args.words, usage=USAGE)  # refuse what cannot be understood before anything is sent
    output.check(fmt)
    with attempting(f"get {' '.join(args.words)}"):
        chosen = targets.resolve(session.api, args.words, usage=USAGE)
        if args.all_namespaces and any(target.names for target in chosen):
            raise UsageError("a name cannot be looked up across all namespaces", next="pdc get KIND -A")
        if args.watch:
            return _watch(session, chosen, fmt)
        if fmt.is_table:
            return _tables(session, chosen, fmt)
        return _objects(session, chosen, fmt)


# Tables


def _tables(session: Session, chosen: list[Target], fmt: Format) -> int:
    shown = 0
    missing: list[NotFound] = []
    for target in chosen:
        table = _table(session, target, missing)
        if not table.rows:
            continue
        if shown:
            session.print()
        printer = Printer(headers=not session.args.no_headers)
        shape = _shape(session, target, fmt, several=len(chosen) > 1)
        also = server_table.filled(table, (REFUSED,), with_text="False")
        if session.args.command == "ps":
            also |= server_table.filled(table, REPORTED)
        shape = shape._replace(also=also)
        _write(session, printer, target, table, shape)
        shown += 1
    if not shown and not missing:
        _note_nothing(session, chosen)
    return _report_missing(session, missing)


def _table(session: Session, target: Target, missing: list[NotFound]) -> Table:
    args = session.args
    tables = []
    for name in target.names or (None,):
        try:
            tables.append(
                server_table.fetch(
                    session.api,
                    target.resource,
                    session.scope if target.resource.namespaced else None,
                    name=name,
                    query=_selectors(args) if name is None else None,
                    whole_objects=bool(args.sort_by),
                )
            )
        except NotFound as error:
            if name is None:
                raise
            missing.append(error)
    if not tables:
        return Table([], [])
    joined = tables[0]._replace(rows=[row for table in tables for row in table.rows])
    return server_table.sort(joined, output.sort_key(args.sort_by)) if args.sort_by else joined


def _write(session: Session, printer: Printer, target: Target, table: Table, shape: Shape) -> None:
    rows = [shape.cells(table.columns, row) for row in table.rows]
    sys.stdout.write(printer.render(shape.headers(table.columns), rows))


def _shape(session: Session, target: Target, fmt: Format, *, several: bool) -> Shape:
    args = session.args
    labels = tuple(label for group in args.label_columns for label in group.split(","))
    return Shape(
        wide=fmt.name == "wide",
        namespace=args.all_namespaces and target.resource.namespaced,
        labels=args.show_labels,
        label_columns=labels,
        prefix=targets.display(target.resource, "") if several else "",
    )


def _note_nothing(session: Session, chosen: list[Target]) -> None:
    if session.args.ignore_not_found and any(target.names for target in chosen):
        return
    suggestions.check_namespace(session)
    cluster = session.scope is None or not any(target.resource.namespaced for target in chosen)
    session.note("No resources found" if cluster else f"No resources found in {session.scope} namespace.")


def _report_missing(session: Session, missing: list[NotFound]) -> int:
    if not missing or session.args.ignore_not_found:
        return 0
    sys.stdout.flush()
    if len(missing) == 1:
        raise missing[0]
    raise CliError(
        f"cannot get {len(missing)} objects", why="; ".join(error.message for error in missing), exit_code=NOT_FOUND
    )


# Other formats


def _objects(session: Session, chosen: list[Target], fmt: Format) -> int:
    args = session.args
    found: list[Object] = []
    missing: list[NotFound] = []
    for target in chosen:
        found += _fetch(session, target, missing)
    if args.sort_by:
        found.sort(key=output.sort_key(args.sort_by))
    if not args.show_managed_fields and fmt.name in ("json", "yaml"):  # templates see all, as kubectl's do
        found = [output.without_managed_fields(obj) for obj in found]
    single = len(chosen) == 1 and len(chosen[0].names) == 1
    if found or not (single or missing):
        output.print_objects(session, found, fmt, single=single)
    return _report_missing(session, missing)


def _fetch(session: Session, target: Target, missing: list[NotFound]) -> list[Object]:
    api, resource = session.api, target.resource
    namespace = session.scope if resource.namespaced else None
    if not target.names:
        call = api.client.list(
            resource,
            namespace,
            label_selector=session.args.selector,
            field_selector=session.args.field_selector,
            limit=server_table.PAGE,
        )
        return api.do(call).items
    found = []
    for name in target.names:
        try:
            found.append(api.do(api.client.get(resource, name, namespace)))
        except NotFound as error:
            missing.append(error)
    return found


def _selectors(args: argparse.Namespace) -> dict[str, str]:
    pairs = {"labelSelector": args.selector, "fieldSelector": args.field_selector}
    return {key: value for key, value in pairs.items() if value}


# Watching


def _watch(session: Session, chosen: list[Target], fmt: Format) -> int:
    from paddlecloud.sdk.watching import rounds

    if len(chosen) != 1 or len(chosen[0].names) > 1:
        raise UsageError("only one kind, and at most one name, can be watched", next="pdc get KIND -w")
    target = chosen[0]
    query = _selectors(session.args)
    if target.names:
        query["fieldSelector"] = f"metadata.name={target.names[0]}"
    namespace = session.scope if target.resource.namespaced else None
    printer = Printer(headers=not session.args.no_headers)
    shape = _shape(session, target, fmt, several=False)
    columns: list[server_table.Column] = []

    def show(table: Table) -> None:
        nonlocal columns
        columns = table.columns or columns
        if fmt.is_table:
            _write(session, printer, target, table._replace(columns=columns), shape)
        else:
            _write_changes(session, table, fmt)
        sys.stdout.flush()

    for pause in rounds():
        time.sleep(pause)
        table = server_table.fetch(session.api, target.resource, namespace, query=query, whole_objects=not fmt.is_table)
        if table.rows:
            show(table)
        elif target.names:
            raise not_found(target.resource.plural, target.names[0], group=target.resource.group)
        version = table.resource_version
        try:
            for pause in rounds():  # servers end a watch after minutes; it goes on where it stopped
                time.sleep(pause)
                for _, change in server_table.watch(
                    session.api, target.resource, namespace, query=query, resource_version=version
                ):
                    show(change)
                    versions = [str(row.metadata.get("resourceVersion") or "") for row in change.rows]
                    version = next(filter(None, reversed(versions)), version)
        except (Expired, Gone):
            continue  # too far behind: list again, as any watcher must
    return 0


def _write_changes(session: Session, table: Table, fmt: Format) -> None:
    """One line per object as JSON, so that a program can read it as it comes."""
    for row in table.rows:
        obj = row.object if session.args.show_managed_fields else output.without_managed_fields(row.object)
        if fmt.name == "json":
            session.print_data(output.to_json_line(obj))
        elif fmt.name == "yaml":
            session.print("---")
            output.print_value(session, obj, fmt)
        else:
            output.print_objects(session, [obj], fmt, single=True)
