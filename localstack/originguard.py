"""Rejects requests from web pages of other origins; internal/originguard does so for servers in Go.

A browser on this machine can connect to every server on loopback. It marks the requests of a page of another origin
with Sec-Fetch-Site and Origin. A page whose name resolves to 127.0.0.1 (DNS rebinding) counts as the server's own, but
the Host header has that name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# AWS service endpoints, by which an emulator distinguishes APIs and buckets. No other site can have such a name.
AWS_DOMAINS = (".localhost", ".amazonaws.com", ".amazonaws.com.cn", ".on.aws", ".localhost.localstack.cloud")
HTTP_PORT = 80


@dataclass(frozen=True)
class Rejection:
    """The response to a request from a page of another origin."""

    status: int
    code: str
    detail: str


def own_host(port: int) -> Callable[[str], bool]:
    """Returns a check for the host names of a server on a loopback port."""
    hosts = {f"{name}:{port}" for name in LOOPBACK} | (set(LOOPBACK) if port == HTTP_PORT else set())
    return lambda host: host in hosts


def emulator_host(host: str) -> bool:
    """Reports whether a host is on loopback or in a domain of AWS, with any port."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name = host
    return name in LOOPBACK or name.endswith(AWS_DOMAINS)


def check(accepts: Callable[[str], bool], host: str, site: str, origin: str) -> Rejection | None:
    """Returns the reason why a request is rejected. The arguments are its headers Host, Sec-Fetch-Site and Origin, or
    empty."""
    host = host.lower()
    if not accepts(host):
        return Rejection(421, "forbidden_host", "the request names another host than this server")
    foreign = site not in ("same-origin", "none") if site else origin not in ("", f"http://{host}")
    if foreign:
        return Rejection(403, "forbidden_origin", "a web page of another origin sent this request")
    return None
