"""A small OpenID provider on loopback: discovery, authorize, token, keys, and identity tokens that are really signed.

It signs in whoever `claims` says, without a form: what is tried is what the workbench makes of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "workbench", "only-for-this-test"


@dataclass
class Provider:
    """`claims`: of whoever signs in next. `refused`: requests that broke the protocol, each in words."""

    address: str
    claims: dict[str, Any] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    signed_in: int = 0
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"use": "sig", "kid": "k1"}))
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def secrets(self, port: int, **more: str) -> str:
        """The secrets.toml of an app on that port."""
        tables = "".join(f"\n[{name}]\n{lines}\n" for name, lines in more.items())
        return (
            "[auth]\n"
            f'redirect_uri = "http://127.0.0.1:{port}/oauth2callback"\n'
            f'cookie_secret = "{secrets.token_hex(16)}"\n'
            f'client_id = "{CLIENT}"\nclient_secret = "{SECRET}"\n'
            f'server_metadata_url = "{self.address}/.well-known/openid-configuration"\n{tables}'
        )

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "scopes_supported": ["openid", "profile", "email"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent on, with a code that is good once."""
        if asked.get("client_id") != CLIENT or asked.get("response_type") != "code":
            self.refused.append("authorize: not this client, or not a code")
        if asked.get("code_challenge_method") != "S256":
            self.refused.append("authorize: no S256 challenge")
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**asked, "claims": dict(self.claims)}
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked.get('state', '')})}"

    def token(self, asked: dict[str, str], basic: str) -> dict[str, Any]:
        """The tokens for a code: it checks the client, the place, the challenge, and that the code is used once."""
        given = self.codes.pop(asked.get("code", ""), None)
        id, _, secret = base64.b64decode(basic).decode().partition(":") if basic else ("", "", "")
        if (id or asked.get("client_id"), secret or asked.get("client_secret")) != (CLIENT, SECRET):
            self.refused.append("token: not this client")
        if given is None:
            self.refused.append("token: an unknown or a used code")
            return {"error": "invalid_grant"}
        proof = base64.urlsafe_b64encode(hashlib.sha256(asked.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        if proof.decode() != given.get("code_challenge") or asked.get("redirect_uri") != given["redirect_uri"]:
            self.refused.append("token: the proof or the place is another")
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": given.get("nonce")}
        self.signed_in += 1
        signed = jwt.encode({"alg": "RS256", "kid": "k1"}, {**claims, **given["claims"]}, self.key)
        return {"access_token": secrets.token_hex(8), "token_type": "Bearer", "expires_in": 300, "id_token": signed}


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _send(self, body: dict[str, Any], code: int = 200) -> None:
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/.well-known/openid-configuration":
                self._send(made.discovery())
            elif parts.path == "/keys":
                self._send({"keys": [made.key.as_dict(private=False)]})
            elif parts.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", made.authorize(asked))
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._send({"error": "not found"}, 404)

        def do_POST(self) -> None:
            said = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            asked = {name: values[0] for name, values in parse_qs(said).items()}
            answer = made.token(asked, (self.headers.get("Authorization") or "").removeprefix("Basic "))
            self._send(answer, 400 if "error" in answer else 200)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
