"""What Kubernetes refuses in Ingresses and IngressClasses: pkg/apis/networking/validation of it."""

from __future__ import annotations

import re

from paddlecloud.kube.name_rules import subdomain_problems, wildcard_subdomain_problems
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.validation.rules import (
    immutable,
    is_address,
    port,
    port_name_problems,
    problems,
)
from paddlecloud.local.apiserver.objects.metadata import (
    dns1035_problems,
    label_name_problems,
    path_segment_problems,
)
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, invalid, required, too_long

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
"""What named the class of an Ingress before `ingressClassName`."""

_NO_ADDRESS = "must be a DNS name, not an IP address"
_AMBIGUOUS = ("//", "/./", "/../", "%2f", "%2F")
_AMBIGUOUS_ENDS = ("/..", "/.")
_LONGEST_CONTROLLER = 250
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def validate_ingress(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    found: list[Cause] = []
    if not rules and backend is None:
        found.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        found += _backend("spec.defaultBackend", backend)
    for index, rule in enumerate(rules):
        found += _rule(f"spec.rules[{index}]", rule)
    for index, tls in enumerate(spec.get("tls") or ()):
        found += _tls(f"spec.tls[{index}]", tls)
    chosen = spec.get("ingressClassName")
    if chosen is not None:
        found += problems("spec.ingressClassName", chosen, subdomain_problems(chosen))
    annotated = ((new.get("metadata") or {}).get("annotations") or {}).get(CLASS_ANNOTATION)
    if old is None and annotated is not None and chosen is not None and annotated != chosen:
        detail = "must match `ingressClassName` when both are specified"
        found.append(invalid(f"annotations.{CLASS_ANNOTATION}", annotated, detail))
    return found


def _rule(path: str, rule: Object) -> list[Cause]:
    host, http = rule.get("host") or "", rule.get("http")
    found: list[Cause] = []
    if host:
        found += [invalid(f"{path}.host", host, _NO_ADDRESS)] if is_address(host) else []
        found += _host(f"{path}.host", host)
    if http is None:
        return found
    paths = http.get("paths") or []
    if not paths:
        found.append(required(f"{path}.http.paths"))
    for index, entry in enumerate(paths):
        found += _path(f"{path}.http.paths[{index}]", entry)
    return found


def _host(field: str, host: str) -> list[Cause]:
    return problems(field, host, wildcard_subdomain_problems(host) if "*" in host else subdomain_problems(host))


def _path(path: str, entry: Object) -> list[Cause]:
    kind, given = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    found: list[Cause] = []
    if not given.startswith("/") and (given or kind != "ImplementationSpecific"):
        found.append(invalid(f"{path}.path", given, "must be an absolute path"))
    if kind != "ImplementationSpecific":
        wrong = [f"must not contain '{part}'" for part in _AMBIGUOUS if part in given]
        wrong += [f"cannot end with '{end}'" for end in _AMBIGUOUS_ENDS if given.endswith(end)]
        found += problems(f"{path}.path", given, wrong)
    return found + _backend(f"{path}.backend", entry.get("backend") or {})


def _backend(path: str, backend: Object) -> list[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _reference(f"{path}.resource", resource)
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name = service.get("name") or ""
    found = (
        problems(f"{path}.service.name", name, dns1035_problems(name)) if name else [required(f"{path}.service.name")]
    )
    port_name, number = (service.get("port") or {}).get("name"), (service.get("port") or {}).get("number")
    if port_name and number:
        found.append(invalid(path, "", "cannot set both port name & port number"))
    elif port_name:
        found += problems(f"{path}.service.port.name", port_name, port_name_problems(port_name))
    elif number:
        found += port(f"{path}.service.port.number", number)
    else:
        found.append(required(path, "port name or number is required"))
    return found


def _reference(path: str, reference: Object) -> list[Cause]:
    group = reference.get("apiGroup")
    found = problems(f"{path}.apiGroup", group, subdomain_problems(group)) if group is not None else []
    for part in ("kind", "name"):
        value = reference.get(part) or ""
        found += (
            problems(f"{path}.{part}", value, path_segment_problems(value)) if value else [required(f"{path}.{part}")]
        )
    return found


def _tls(path: str, tls: Object) -> list[Cause]:
    found = [cause for at, host in enumerate(tls.get("hosts") or ()) for cause in _host(f"{path}.hosts[{at}]", host)]
    secret = tls.get("secretName") or ""
    return found + (problems(f"{path}.secretName", secret, subdomain_problems(secret)) if secret else [])


def validate_ingress_status(new: Object) -> list[Cause]:
    found: list[Cause] = []
    entries = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    for index, entry in enumerate(entries):
        path, address, host = f"status.loadBalancer.ingress[{index}]", entry.get("ip"), entry.get("hostname")
        if address and not is_address(address):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            found.append(invalid(f"{path}.ip", address, detail))
        if host:
            found += problems(f"{path}.hostname", host, subdomain_problems(host))
            found += [invalid(f"{path}.hostname", host, _NO_ADDRESS)] if is_address(host) else []
    return found


def validate_ingress_class(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    controller, parameters = spec.get("controller") or "", spec.get("parameters")
    found = immutable(spec, old.get("spec") or {}, "spec", "controller") if old is not None else []
    if len(controller) > _LONGEST_CONTROLLER:
        found.append(too_long("spec.controller", _LONGEST_CONTROLLER))
    found += _controller("spec.controller", controller)
    return found + (_parameters("spec.parameters", parameters) if parameters is not None else [])


def _controller(field: str, name: str) -> list[Cause]:
    """A path after a domain, such as `acme.io/foo`."""
    if not name:
        return [required(field)]
    domain, _, path = name.partition("/")
    if not domain or not path:
        return [invalid(field, name, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = problems(field, domain, subdomain_problems(domain))
    if not _PATH.fullmatch(path):
        found.append(invalid(field, path, f"Invalid path (regex used for validation is '{_PATH.pattern}')"))
    return found


def _parameters(path: str, parameters: Object) -> list[Cause]:
    found = _reference(path, parameters)
    namespace, field = parameters.get("namespace"), f"{path}.namespace"
    if parameters.get("scope") != "Namespace":
        return found + ([forbidden(field, "`parameters.scope` is set to 'Cluster'")] if namespace is not None else [])
    if namespace is None:
        return [*found, required(field, "`parameters.scope` is set to 'Namespace'")]
    return found + problems(field, namespace, label_name_problems(namespace))
