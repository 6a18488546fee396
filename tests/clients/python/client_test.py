"""A generated Python client on a running API. perdure_client is generated."""

from __future__ import annotations

import base64
import os
import unittest
from collections.abc import Generator
from datetime import UTC, datetime, timedelta

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from httpx import Timeout

from perdure_client import AuthenticatedClient, Client
from perdure_client.api.default import (
    beat_activity,
    cancel_instance,
    complete_activity,
    get_history,
    get_instance,
    get_result,
    list_cancellations,
    list_instances,
    put_instance,
    query_instance,
    raise_event,
    start_orchestration,
    update_instance,
)
from perdure_client.models import (
    Accepted,
    Answered,
    Beat,
    Beaten,
    Cancellations,
    Completion,
    Event,
    GatewayError,
    History,
    Instance,
    Instances,
    Problem,
    ProblemCode,
    Put,
    Question,
    Reason,
    Result,
    RuntimeStatus,
    Start,
    Started,
    Tags,
    Update,
    Updated,
)
from perdure_client.types import UNSET, Response, Unset

API = os.environ["API"]
TOKEN = os.environ["TOKEN"]
ORDER = {"customer": "ann", "cents": 1200}

hub = AuthenticatedClient(base_url=API, token=TOKEN, timeout=Timeout(30))


class Signature(httpx.Auth):
    """Signs requests with SigV4."""

    requires_request_body = True

    def __init__(self, credentials: Credentials, region: str) -> None:
        self.signer = SigV4Auth(credentials, "execute-api", region)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        signed = AWSRequest(request.method, str(request.url), data=request.content)
        self.signer.add_auth(signed)
        request.headers.update(dict(signed.headers))
        yield request


def segment(instance_id: str) -> str:
    """Encode an ID for a path."""
    return "~" + base64.urlsafe_b64encode(instance_id.encode()).rstrip(b"=").decode()


def start(instance_id: str, tags: Tags | Unset = UNSET) -> Response[GatewayError | Problem | Started]:
    return start_orchestration.sync_detailed(
        "order", client=hub, body=Start(instance_id=instance_id, input_=ORDER, tags=tags)
    )


def ended(instance_id: str) -> Result:
    """Wait for the end of an instance."""
    while True:
        response = get_result.sync_detailed(segment(instance_id), client=hub, wait="20s")
        if not isinstance(response.parsed, Result):
            raise AssertionError(response)
        if response.status_code == 200:
            return response.parsed


def tearDownModule() -> None:
    hub.get_httpx_client().close()


class TestClient(unittest.TestCase):
    def problem(self, parsed: object, status: int, code: ProblemCode) -> Problem:
        assert isinstance(parsed, Problem), parsed
        self.assertEqual((parsed.status, parsed.code), (status, code))
        return parsed

    def test_an_order_is_started_approved_and_charged(self) -> None:
        order = "orders/py 1"
        started = start(order)
        assert isinstance(started.parsed, Started), started
        self.assertEqual(started.parsed.instance_id, order)
        self.assertEqual(started.headers["Location"], f"/v1/instances/{segment(order)}")

        running = get_instance.sync(segment(order), client=hub, wait_for_start="20s", pending=False)
        assert isinstance(running, Instance), running
        self.assertEqual((running.status, running.pending), (RuntimeStatus.RUNNING, UNSET))
        queried = query_instance.sync(segment(order), client=hub, body=Question(query="price"))
        assert isinstance(queried, Answered), queried
        self.assertEqual(queried.answer, 1200)
        updated = update_instance.sync(
            segment(order), client=hub, body=Update(update="reprice", input_=0), idempotency_key="py-update"
        )
        assert isinstance(updated, Updated), updated
        self.assertEqual((updated.result, updated.update_id), (1200, "py-update"))

        raised = raise_event.sync(segment(order), "approved", client=hub, body={"by": "bob"})
        assert isinstance(raised, Accepted), raised
        result = ended(order)
        self.assertEqual(result.status, RuntimeStatus.COMPLETED)
        self.assertEqual(
            result.output, {"customer": "ann", "cents": 0, "approvedBy": "bob", "charge": "0 cents from ann"}
        )

        status = get_instance.sync(segment(order), client=hub, cost=True)
        assert isinstance(status, Instance) and not isinstance(status.cost, Unset), status
        self.assertGreaterEqual(status.updated_at, status.created_at)
        self.assertEqual((status.orchestration, status.custom_status, status.cost.activities), ("order", None, 1))

    def test_a_history_is_read_in_pages(self) -> None:
        start("py-history")
        raise_event.sync("py-history", "approved", client=hub, body={"by": "bob"})
        ended("py-history")
        events: list[Event] = []
        after: int | Unset = UNSET
        execution: str | Unset = UNSET
        while True:
            page = get_history.sync("py-history", client=hub, limit=2, after=after, execution=execution)
            assert isinstance(page, History) and len(page.items) <= 2, page
            events += page.items
            if isinstance(page.next_, Unset):
                break
            after, execution = page.next_, page.execution_id
        self.assertEqual([e.id for e in events], list(range(1, len(events) + 1)))
        self.assertEqual((events[0].kind, events[-1].kind), ("OrchestrationStarted", "OrchestrationCompleted"))
        self.assertEqual([e["name"] for e in events if e.kind == "ActivityScheduled"], ["charge"])

    def test_a_list_is_filtered_and_read_in_pages(self) -> None:
        tags = {"team": "py", "a key": "x=y & z"}
        for instance_id in ("py-list-1", "py-list-2", "py-list-3"):
            start(instance_id, Tags.from_dict(tags))
        hour_ago = datetime.now(UTC) - timedelta(hours=1)
        found: list[Instance] = []
        pages = 0
        cursor: str | Unset = UNSET
        while True:
            page = list_instances.sync(
                client=hub, limit=2, tag=["team=py", "a key=x=y & z"], cursor=cursor, started_after=hour_ago
            )
            assert isinstance(page, Instances), page
            found += page.items
            pages += 1
            if isinstance(page.next_cursor, Unset):
                break
            cursor = page.next_cursor
        # Starts of one millisecond have no order.
        self.assertEqual(sorted(i.instance_id for i in found), ["py-list-1", "py-list-2", "py-list-3"])
        self.assertEqual([i.tags.to_dict() for i in found], [tags] * 3)
        self.assertGreaterEqual(pages, 2)

    def test_a_waiting_activity_is_listed(self) -> None:
        start_orchestration.sync("parcel", client=hub, body=Start(instance_id="py-waiting"))
        httpx.get(f"{API}/tokens/py-waiting").raise_for_status()
        status = get_instance.sync("py-waiting", client=hub)
        assert isinstance(status, Instance) and not isinstance(status.pending, Unset), status
        assert not isinstance(status.pending.items, Unset), status
        self.assertEqual([(i.what.value, i.name) for i in status.pending.items], [("activity", "pickup")])

    def test_a_cancelled_order_ends(self) -> None:
        start("py-cancel")
        cancelled = cancel_instance.sync("py-cancel", client=hub, body=Reason(message="no stock"))
        assert isinstance(cancelled, Accepted), cancelled
        self.assertEqual(ended("py-cancel").status, RuntimeStatus.CANCELLED)
        listed = list_cancellations.sync("py-cancel", client=hub)
        assert isinstance(listed, Cancellations), listed
        self.assertEqual([(c.target.value, c.message) for c in listed.items], [("instance", "no stock")])
        self.problem(cancel_instance.sync("py-cancel", client=hub), 410, ProblemCode.INSTANCE_OVER)

    def test_problems_have_a_status_and_a_code(self) -> None:
        self.problem(get_instance.sync("missing", client=hub), 404, ProblemCode.INSTANCE_NOT_FOUND)
        start("py-twice")
        twice = self.problem(start("py-twice").parsed, 409, ProblemCode.INSTANCE_ID_IN_USE)
        assert not isinstance(twice.existing, Unset), twice
        self.assertEqual((twice.retryable, twice.existing.orchestration), (False, "order"))
        slash = self.problem(get_instance.sync("a/b", client=hub), 400, ProblemCode.INVALID_REQUEST)
        self.assertIn("~", slash.detail)
        unknown = start_orchestration.sync("none", client=hub, body=Start())
        self.problem(unknown, 404, ProblemCode.UNKNOWN_ORCHESTRATION)

    def test_a_request_for_another_host_is_a_problem(self) -> None:
        with AuthenticatedClient(base_url=API, token=TOKEN, headers={"Host": "attacker.example"}) as rebound:
            self.problem(list_instances.sync(client=rebound), 421, ProblemCode.FORBIDDEN_HOST)

    def test_a_request_of_another_origin_is_no_gateway_error(self) -> None:
        with AuthenticatedClient(base_url=API, token=TOKEN, headers={"Sec-Fetch-Site": "cross-site"}) as elsewhere:
            refused = list_instances.sync_detailed(client=elsewhere)
        assert isinstance(refused.parsed, GatewayError), refused
        self.assertEqual((refused.status_code, refused.parsed["code"]), (403, "forbidden_origin"))

    def test_a_start_with_an_idempotency_key_can_be_repeated(self) -> None:
        first, second = (
            start_orchestration.sync("order", client=hub, body=Start(input_=ORDER), idempotency_key="py-order-7")
            for _ in range(2)
        )
        assert isinstance(first, Started) and isinstance(second, Started), (first, second)
        self.assertEqual(first.instance_id, second.instance_id)

    def test_an_activity_is_completed_by_token(self) -> None:
        start_orchestration.sync("parcel", client=hub, body=Start(instance_id="py-parcel"))
        sent = httpx.get(f"{API}/tokens/py-parcel").text
        beat = beat_activity.sync(client=hub, body=Beat(token=sent, details={"at": "gate"}))
        self.assertEqual(beat, Beaten())
        completed = complete_activity.sync_detailed(client=hub, body=Completion(token=sent, result="on board"))
        self.assertEqual(completed.status_code, 202)
        self.assertEqual(ended("py-parcel").output, "on board")
        late = complete_activity.sync(client=hub, body=Completion(token=sent, result="lost"))
        self.problem(late, 410, ProblemCode.EXECUTION_OVER)

    def test_errors_of_a_gateway_have_no_code(self) -> None:
        for token, status, message in (
            ("none", 401, "Unauthorized"), ("other", 403, "Forbidden"), ("throttled", 429, "Too Many Requests"),
        ):
            with AuthenticatedClient(base_url=API, token=token) as rejected:
                refused = list_instances.sync_detailed(client=rejected)
            assert isinstance(refused.parsed, GatewayError), refused
            self.assertEqual((refused.status_code, refused.parsed.message), (status, message))

    def test_requests_are_signed_with_sigv4(self) -> None:
        signature = Signature(Credentials("AKIDEXAMPLE", "secret"), "us-east-1")
        with Client(base_url=API, httpx_args={"auth": signature}) as signed:
            body = Put(orchestration="order", input_=ORDER)
            put = put_instance.sync(segment("py/signed"), client=signed, body=body)
        assert isinstance(put, Started), put
        self.assertEqual(put.instance_id, "py/signed")


if __name__ == "__main__":
    unittest.main()
