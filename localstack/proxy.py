"""Serves the hub's API on loopback, for callers that do not sign.

API hosts of a local cloud do not resolve, so this dials the cloud, says the host
in the Host header and signs: the API asks for IAM here as on AWS. There, callers
sign for themselves and nothing stands between.
"""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import cloud

UPSTREAM_SECONDS = 60  # above the 30 s that a long poll may take
# Of one connection alone, RFC 9110 section 7.6.1; the length is set anew.
HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}


def listen(port: int) -> ThreadingHTTPServer:
    """Takes the port, 0 a free one, before anything slow is begun."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler)
    except OSError as error:
        raise cloud.Failed(f"port {port} of 127.0.0.1: {error.strerror}; choose another with PORT=") from error
    server.daemon_threads = True
    return server


def serve(server: ThreadingHTTPServer, endpoint: str, api_host: str) -> None:
    """Serves from a thread; ends with the server's shutdown."""
    server.RequestHandlerClass = handler(endpoint, api_host)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()


def signed(method: str, api_host: str, path: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    """The headers with the API's host and a signature; a caller's own signature stays."""
    if any(name.lower() == "authorization" for name in headers):
        return {**headers, "Host": api_host}
    service = "lambda" if ".lambda-url." in api_host else "execute-api"
    key, secret = cloud.CREDENTIALS["AWS_ACCESS_KEY_ID"], cloud.CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
    request = AWSRequest(method, f"http://{api_host}{path}", {"Host": api_host}, body)
    SigV4Auth(Credentials(key, secret), service, cloud.REGION).add_auth(request)
    return {**headers, **dict(request.headers.items())}


def handler(endpoint: str, api_host: str) -> type[BaseHTTPRequestHandler]:
    upstream = urlsplit(endpoint)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            plain = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
            headers = signed(self.command, api_host, self.path, plain, body)
            connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port, timeout=UPSTREAM_SECONDS)
            try:
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                self.answer(response.status, response.getheaders(), response.read())
            except (OSError, http.client.HTTPException) as error:
                self.answer(502, [("Content-Type", "text/plain")], f"the local cloud: {error}\n".encode())
            finally:
                connection.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = forward

        def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the functions have logs of their own."""

    return Handler
