"""Who gets in, as whom, and who does not."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from multidict import CIMultiDict

from paddlecloud.kube import errors
from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.apiserver.auth.authentication import (
    ADMIN,
    ANONYMOUS,
    Authenticator,
    StaticTokens,
    User,
    impersonation_of,
    open_to_anonymous,
    self_subject_review,
    token_review,
    user_of_certificate,
)
from paddlecloud.local.apiserver.auth.tokens import ISSUER, BoundObject, TokenIssuer

SECRET = "s3cr3t-admin-token"
KEY = ec.generate_private_key(ec.SECP256R1())


class AuthenticatorWithObjects:
    """An authenticator with the objects its tokens depend on."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.issuer = TokenIssuer(KEY, clock=self.clock)
        self.objects = {("ServiceAccount", "ns", "robot"): "u-1", ("Pod", "ns", "p"): "u-2"}
        self.authenticator = Authenticator(
            StaticTokens({SECRET: ADMIN}), issuer=self.issuer, lookup=lambda *key: self.objects.get(key)
        )

    def token(self, **options: Any) -> str:
        return self.issuer.issue(namespace="ns", name="robot", uid="u-1", **options)[0]

    def user(self, token: str) -> User | None:
        return self.authenticator.authenticate({"authorization": f"Bearer {token}"})


@pytest.fixture
def world() -> AuthenticatorWithObjects:
    return AuthenticatorWithObjects()


def test_the_static_token_is_the_administrator(world: AuthenticatorWithObjects) -> None:
    assert world.user(SECRET) == ADMIN
    assert "system:masters" in ADMIN.groups


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_header_names_and_scheme_have_no_case(world: AuthenticatorWithObjects, scheme: str) -> None:
    headers = CIMultiDict({"AUTHORIZATION": f"{scheme} {SECRET}"})
    assert world.authenticator.authenticate(headers) == ADMIN


@pytest.mark.parametrize(
    "value",
    [
        f"Bearer {SECRET}x",
        f"Bearer {SECRET[:-1]}",
        "Bearer ",
        "Bearer",
        f"Basic {SECRET}",
        SECRET,
        "Bearer a.b.c",
        "Bearer é",
        "Bearer " + "x" * 100_000,
    ],
)
def test_bad_credentials_are_refused_and_not_repeated(world: AuthenticatorWithObjects, value: str) -> None:
    with pytest.raises(errors.Unauthorized) as caught:
        world.authenticator.authenticate({"authorization": value})
    assert SECRET[:8] not in caught.value.message
    assert len(caught.value.message) < 200


def test_bad_credentials_do_not_become_anonymous_on_open_paths(world: AuthenticatorWithObjects) -> None:
    with pytest.raises(errors.Unauthorized):
        world.authenticator.identify({"authorization": "Bearer wrong"}, None, "/healthz")


def test_no_credentials_is_nobody(world: AuthenticatorWithObjects) -> None:
    assert world.authenticator.authenticate({}) is None
    assert world.authenticator.identify({}, None, "/version") == ANONYMOUS
    with pytest.raises(errors.Unauthorized):
        world.authenticator.identify({}, None, "/api")


@pytest.mark.parametrize(
    ("path", "is_open"),
    [
        ("/healthz", True),
        ("/healthz/store", False),
        ("/readyz", True),
        ("/livez", True),
        ("/version", True),
        ("/version/../api", False),
        ("/healthzz", False),
        ("/", False),
        ("/api", False),
        ("/metrics", False),
        ("/openid/v1/jwks", False),
    ],
)
def test_only_health_and_version_are_open(path: str, is_open: bool) -> None:
    assert open_to_anonymous(path) is is_open


def test_a_service_account_token_is_its_account(world: AuthenticatorWithObjects) -> None:
    user = world.user(world.token(bound=[BoundObject("Pod", "p", "u-2")]))
    assert user is not None
    assert user.name == "system:serviceaccount:ns:robot"
    assert user.uid == "u-1"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)


@pytest.mark.parametrize("gone", [("ServiceAccount", "ns", "robot"), ("Pod", "ns", "p")])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_token_ends_with_what_it_belongs_to(
    world: AuthenticatorWithObjects, gone: tuple[str, str, str], replaced: bool
) -> None:
    token = world.token(bound=[BoundObject("Pod", "p", "u-2")])
    assert world.user(token)
    if replaced:
        world.objects[gone] = "another-uid"
    else:
        del world.objects[gone]
    with pytest.raises(errors.Unauthorized, match="no longer exists"):
        world.user(token)


async def test_an_expired_token_says_so(world: AuthenticatorWithObjects) -> None:
    token = world.token(seconds=600)
    await world.clock.advance(601)
    with pytest.raises(errors.Unauthorized, match="expired"):
        world.user(token)


def test_a_token_for_another_audience_is_refused(world: AuthenticatorWithObjects) -> None:
    with pytest.raises(errors.Unauthorized, match="audience"):
        world.user(world.token(audiences=["vault"]))


def test_a_client_certificate_names_user_and_groups() -> None:
    cert = {"subject": ((("organizationName", "dev"),), (("organizationName", "ops"),), (("commonName", "alice"),))}
    assert user_of_certificate(cert) == User("alice", groups=("dev", "ops", "system:authenticated"))


def test_a_certificate_without_a_name_is_refused() -> None:
    with pytest.raises(errors.Unauthorized, match="names no user"):
        user_of_certificate({"subject": ((("organizationName", "dev"),),)})


def test_a_token_goes_before_a_certificate(world: AuthenticatorWithObjects) -> None:
    cert = {"subject": ((("commonName", "alice"),),)}
    headers = {"authorization": f"Bearer {SECRET}"}
    assert world.authenticator.authenticate(headers, cert) == ADMIN
    user = world.authenticator.authenticate({}, cert)
    assert user is not None
    assert user.name == "alice"


def test_secrets_show_nowhere(world: AuthenticatorWithObjects) -> None:
    static = StaticTokens({SECRET: ADMIN})
    assert SECRET not in repr(static) + repr(static._users) + repr(world.authenticator)


# --- reviews ---


def test_a_token_review_names_the_user(world: AuthenticatorWithObjects) -> None:
    review = {"kind": "TokenReview", "spec": {"token": world.token()}}
    status = token_review(world.authenticator, review, audiences=[ISSUER])["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:ns:robot"
    assert status["audiences"] == [ISSUER]


def test_a_token_review_of_a_bad_token_is_an_answer_not_an_error(world: AuthenticatorWithObjects) -> None:
    review = {"kind": "TokenReview", "spec": {"token": "nonsense"}}
    status = token_review(world.authenticator, review, audiences=[ISSUER])["status"]
    assert status["authenticated"] is False
    assert status["error"]


def test_a_token_review_without_token_is_invalid(world: AuthenticatorWithObjects) -> None:
    with pytest.raises(errors.Invalid, match=r"spec\.token: Required value"):
        token_review(world.authenticator, {"spec": {}}, audiences=[ISSUER])


def test_whoami() -> None:
    info = self_subject_review(ADMIN)["status"]["userInfo"]
    assert info == {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}


# --- impersonation ---


def test_most_requests_impersonate_nobody() -> None:
    assert impersonation_of({"authorization": "Bearer x", "accept": "*/*"}) is None


def test_impersonation_headers_are_read_whole() -> None:
    headers = CIMultiDict(
        [
            ("Impersonate-User", "bob"),
            ("Impersonate-Group", "dev"),
            ("impersonate-group", "ops"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Scopes", "view"),
            ("Impersonate-Extra-Scopes", "edit"),
        ]
    )
    wanted = impersonation_of(headers)
    assert wanted is not None
    assert wanted.user() == User("bob", "7", ("dev", "ops", "system:authenticated"), {"scopes": ("view", "edit")})


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        ({"impersonate-user": "bob"}, ("system:authenticated",)),
        ({"impersonate-user": "system:anonymous"}, ("system:unauthenticated",)),
        (
            {"impersonate-user": "system:serviceaccount:ns:robot"},
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        ({"impersonate-user": "bob", "impersonate-group": "system:unauthenticated"}, ("system:unauthenticated",)),
    ],
)
def test_groups_follow_from_the_name(headers: dict[str, str], groups: tuple[str, ...]) -> None:
    wanted = impersonation_of(headers)
    assert wanted is not None
    assert wanted.user().groups == groups


def test_the_key_of_an_extra_may_be_escaped() -> None:
    wanted = impersonation_of({"impersonate-user": "bob", "impersonate-extra-acme.com%2fproject": "p"})
    assert wanted is not None
    assert wanted.user().extra == {"acme.com/project": ("p",)}


@pytest.mark.parametrize(
    "name", ["system:serviceaccount::robot", "system:serviceaccount:NS:robot", "system:serviceaccount:ns:a:b"]
)
def test_a_name_that_no_account_can_have_is_a_users(name: str) -> None:
    wanted = impersonation_of({"impersonate-user": name})
    assert wanted is not None
    assert wanted.account is None


@pytest.mark.parametrize(
    "headers",
    [{"impersonate-group": "g"}, {"impersonate-uid": "1"}, {"impersonate-user": ""}, {"impersonate-extra-a": "b"}],
)
def test_impersonation_without_a_user_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(errors.BadRequest, match="without a user"):
        impersonation_of(headers)
