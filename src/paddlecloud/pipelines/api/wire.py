"""What requests and answers of both versions share: pages, triggers, and leaving out what is empty. Pure."""

from __future__ import annotations

from typing import Any, Protocol

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.api import paging
from paddlecloud.pipelines.api.replies import RequestRefused, object_of, text_in
from paddlecloud.pipelines.api.routing import Request
from paddlecloud.pipelines.runs import schedule


def kept(**fields: Any) -> Object:
    """Empty texts, lists and None are left out, as protobuf's JSON does; False stays."""
    return {name: value for name, value in fields.items() if value not in ("", None, [], {})}


def page_query(request: Request) -> paging.Query:
    query = request.query
    return paging.Query(
        query.get("filter", ""), query.get("sort_by", ""), query.get("page_token", ""), query.get("page_size", "")
    )


class Counted(Protocol):
    """What every page has, whatever is on it."""

    @property
    def total(self) -> int: ...
    @property
    def next_token(self) -> str: ...


def shown_list(field: str, found: list[Object], page: Counted) -> Object:
    more = {"next_page_token": page.next_token} if page.next_token else {}
    return {field: found, "total_size": page.total, **more}


def read_trigger(body: Object) -> schedule.Trigger:
    trigger = object_of(body.get("trigger") or {}, "trigger")
    cron = object_of(trigger.get("cron_schedule") or {}, "trigger.cron_schedule")
    periodic = object_of(trigger.get("periodic_schedule") or {}, "trigger.periodic_schedule")
    try:
        return schedule.read(
            cron=text_in(cron, "cron"),
            interval=text_in(periodic, "interval_second"),
            start=text_in(cron, "start_time") or text_in(periodic, "start_time"),
            end=text_in(cron, "end_time") or text_in(periodic, "end_time"),
        )
    except schedule.ScheduleError as error:
        raise RequestRefused(400, f"trigger: {error}") from error


def shown_trigger(spec: Object) -> Object:
    """The trigger of a CronWorkflow's spec."""
    shown = schedule.of_spec(spec)
    if shown.interval:
        return {"periodic_schedule": {"interval_second": str(shown.interval)}}
    return {"cron_schedule": {"cron": shown.cron}}
