"""Serves the hub's API on loopback, and signs requests without a signature.

The API requires IAM as on AWS, and the host names of a local cloud's APIs do not resolve. The proxy connects to the
cloud, sets the API's host name and signs the request. Every client that can connect has its permissions, so it rejects
web pages of other origins.

The server is waitress and not written in Go, because a process that `perdure dev` starts has no sources of the module.
"""

from __future__ import annotations

import http.client
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import waitress.server
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import cloud
import originguard

UPSTREAM_SECONDS = 60  # more than the 30 s of a long poll
SERVER = {
    "ident": None,
    "threads": 128,  # a long poll occupies one
    "connection_limit": 1000,
    "asyncore_use_poll": True,  # select is limited to 1024 file descriptors
    # Seconds without a byte while no request is being handled. A client must close first, or its next request is lost;
    # Go's client closes after 90 s.
    "channel_timeout": 120,
    "max_request_header_size": 64 << 10,
    "max_request_body_size": 1 << 20,  # the API has a limit of 256 KiB and reports it
}
# Headers of one connection (RFC 9110, section 7.6.1), and headers that the proxy sets.
HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "trailers", "transfer-encoding", "upgrade",
              "proxy-authenticate", "proxy-authorization", "host", "content-length", "expect"}
# Browser headers for this server, which has checked them.
BROWSER = {"cookie", "origin", "referer"}
PAGE = "/ui"  # the web UI; pages of another site may link to it

Headers = list[tuple[str, str]]
Environment = dict[str, Any]


def listen(port: int) -> socket.socket:
    """Opens the port before the slow steps start; 0 selects a free one. The port is released when this process ends."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise cloud.Failed(f"listen on 127.0.0.1:{port}: {error.strerror}; set PORT to another port") from error
    listener.listen()
    return listener


def serve(listener: socket.socket, endpoint: str, api_host: str) -> None:
    """Serves requests from threads that end with this process."""
    port = listener.getsockname()[1]
    # waitress warns of requests without an idle thread. On a busy machine its threads may still be starting.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    server = waitress.server.create_server(application(port, endpoint, api_host), sockets=[listener], **SERVER)
    threading.Thread(target=server.run, daemon=True).start()


def application(port: int, endpoint: str, api_host: str) -> Callable[..., Iterable[bytes]]:
    """Returns the proxy, as a WSGI application."""
    accepts = originguard.own_host(port)

    def forward(environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, body = rejected(accepts, environ) or answer(environ, endpoint, api_host)
        start_response(status, headers)
        return [body]

    return forward


Answer = tuple[str, Headers, bytes]


def rejected(accepts: Callable[[str], bool], environ: Environment) -> Answer | None:
    method, target = environ["REQUEST_METHOD"], environ["REQUEST_URI"]
    site, origin = environ.get("HTTP_SEC_FETCH_SITE", ""), environ.get("HTTP_ORIGIN", "")
    if method in ("GET", "HEAD") and target.partition("?")[0] == PAGE:
        site = origin = ""
    rejection = originguard.check(accepts, environ.get("HTTP_HOST", ""), site, origin)
    if rejection:
        return problem(rejection.status, rejection.code, rejection.detail)
    if not target.startswith("/") or not target.isascii():
        return problem(400, "invalid_request", "the request target is not a path")
    if "HTTP_TRANSFER_ENCODING" in environ:  # waitress has decoded the transfer encoding
        return problem(400, "invalid_request", "HTTP/1.0 has no Transfer-Encoding")
    return None


def answer(environ: Environment, endpoint: str, api_host: str) -> Answer:
    """Forwards a request to the API, and returns its response."""
    upstream = urlsplit(endpoint)
    method, target, body = environ["REQUEST_METHOD"], environ["REQUEST_URI"], environ["wsgi.input"].read()
    headers = signed(method, api_host, target, forwarded(environ), body)
    connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=UPSTREAM_SECONDS)
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        status, content = f"{response.status} {response.reason}", response.read()
        return status, returned(method, response.getheaders(), content), content
    except (OSError, http.client.HTTPException, ValueError) as error:
        return problem(502, "unavailable", f"the local cloud does not respond: {error}", retryable=True)
    finally:
        connection.close()


def forwarded(environ: Environment) -> dict[str, str]:
    """Returns the caller's headers for the API."""
    sent = {name[5:].replace("_", "-").title(): value for name, value in environ.items() if name.startswith("HTTP_")}
    if environ.get("CONTENT_TYPE"):
        sent["Content-Type"] = environ["CONTENT_TYPE"]
    dropped = HOP_BY_HOP | BROWSER | named(sent.get("Connection", ""))
    return {name: value for name, value in sent.items() if name.lower() not in dropped}


def returned(method: str, headers: Headers, body: bytes) -> Headers:
    """Returns the API's headers for the caller. A response to HEAD keeps the length of the missing body."""
    dropped = HOP_BY_HOP | {word for name, value in headers if name.lower() == "connection" for word in named(value)}
    length = str(len(body))
    if method == "HEAD":
        length = next((value for name, value in headers if name.lower() == "content-length"), length)
    return [*((name, value) for name, value in headers if name.lower() not in dropped), ("Content-Length", length)]


def named(connection: str) -> set[str]:
    """Returns the headers that a Connection header names."""
    return {word.strip().lower() for word in connection.split(",")}


def signed(method: str, api_host: str, path: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    """Returns the headers with the API's host and a signature. It keeps a signature of the caller."""
    if "Authorization" in headers:
        return {**headers, "Host": api_host}
    service = "lambda" if ".lambda-url." in api_host else "execute-api"
    key, secret = cloud.CREDENTIALS["AWS_ACCESS_KEY_ID"], cloud.CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
    request = AWSRequest(method, f"http://{api_host}{path}", {"Host": api_host}, body)
    SigV4Auth(Credentials(key, secret), service, cloud.REGION).add_auth(request)
    return {**headers, **dict(request.headers.items())}


def problem(status: int, code: str, detail: str, retryable: bool = False) -> Answer:
    """Returns a problem (RFC 9457) in the format of the API."""
    title = http.client.responses[status]
    body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail,
                       "code": code, "retryable": retryable}).encode()
    headers = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store"),
               ("X-Content-Type-Options", "nosniff"), ("Content-Length", str(len(body)))]
    return f"{status} {title}", headers, body
