"""Tokens of an OpenID Connect provider, renewed by the refresh token of a kubeconfig; no file is changed."""

import json
import time
from base64 import b64encode, urlsafe_b64decode
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from twgen.clients.http import Request, answer_to
from twgen.clients.logins.contexts import Entry, Unusable
from twgen.clients.logins.proofs import Proof, seconds_until
from twgen.clients.logins.transport import pool_to
from twgen.errors import OutOfTime, TwgenError
from twgen.model.credentials import remember
from twgen.yaml.limits import WORLD, Budget

_SECONDS = 20.0
_MOST_BYTES = 2**20


class OidcTokens:
    """The ID token of an `auth-provider` named oidc."""

    def __init__(self, provider: Entry) -> None:
        self._provider = provider
        self._token = str(provider.fields.get("id-token") or "")
        self._refresh = str(provider.fields.get("refresh-token") or "")

    def proof(self) -> Proof:
        """The ID token, renewed if it is about to end."""
        if self._token and (present := self._present()).lasts != 0:
            return present
        if not self._refresh:
            raise Unusable("its OIDC token has expired, and there is no refresh-token: log in again")
        try:
            self._renew()
        except TwgenError as error:
            raise Unusable(f"its OIDC token cannot be renewed ({error})") from None
        return self._present()

    def _present(self) -> Proof:
        """The ID token as it is; it lasts 0 seconds if it must be renewed."""
        end = _end_of(self._token)
        return Proof(f"Bearer {self._token}", None if end is None else seconds_until(end))

    def _renew(self) -> None:
        fields = self._provider.fields
        client, secret = str(fields.get("client-id") or ""), str(fields.get("client-secret") or "")
        remember((self._refresh, secret))
        issuer = str(fields.get("idp-issuer-url") or "").rstrip("/")
        found = self._answer("GET", f"{issuer}/.well-known/openid-configuration", {}, None)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh, "client_id": client}
        if secret:
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()
            headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
        renewed = self._answer("POST", str(found.get("token_endpoint")), headers, urlencode(form).encode())
        if not renewed.get("id_token"):
            raise Unusable("its OIDC token cannot be renewed (the provider sent no id_token)")
        self._token = str(renewed["id_token"])
        self._refresh = str(renewed.get("refresh_token") or self._refresh)

    def _answer(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> dict[str, Any]:
        request = Request(
            who=url,
            method=method,
            url=url,
            headers=headers,
            ends=time.monotonic() + _SECONDS,
            late=OutOfTime(f"{url} did not answer within {_SECONDS:.0f} s"),
            most_bytes=_MOST_BYTES,
            body=body,
        )
        authority = self._provider.content("idp-certificate-authority").decode()
        answer = answer_to(request, pool_to(url, authority=authority))
        document = answer.document(Budget(WORLD))
        if answer.status != HTTPStatus.OK or document is None:
            raise Unusable(f"its OIDC token cannot be renewed ({url} answers with {answer.status})")
        return document


def _end_of(token: str) -> datetime | None:
    """When a JWT ends; None: it does not say so."""
    try:
        _, claims, _ = token.split(".")
        end = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4))).get("exp")
        return None if end is None else datetime.fromtimestamp(float(end), UTC)
    except (ValueError, TypeError, AttributeError):
        raise Unusable("its OIDC id-token is not a JSON Web Token") from None
