"""Corrects how ministack reads requests when it enforces IAM.

ministack differs from AWS in six ways. With these corrections, a caller is denied a call only if its role lacks the
permission.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core import iam_actions, iam_evaluator


def correct() -> None:
    batches_need_what_single_messages_need()
    schedules_belong_to_their_groups()
    rules_have_the_arns_of_aws()
    simulations_belong_to_their_principals()
    reads_of_functions_have_their_own_actions()
    iam_evaluator.EvalContext.secure_transport = property(lambda _self: True, lambda _self, _value: None)


def batches_need_what_single_messages_need() -> None:
    """sqs:SendMessage also allows SendMessageBatch. An action of that name does not exist."""
    from_target = iam_actions._action_from_target

    def corrected(headers: dict) -> str | None:
        action = from_target(headers)
        batch = action is not None and headers.get("x-amz-target", "").startswith("AmazonSQS.")
        return action.removesuffix("Batch") if batch else action

    iam_actions._action_from_target = corrected


def schedules_belong_to_their_groups() -> None:
    """ministack assigns every schedule to the group `default`."""
    extract = iam_actions.extract_resource_arn

    def corrected(service: str, method: str, path: str, headers: dict, body: bytes,
                  query: dict, region: str, account: str) -> str:
        arn = extract(service, method, path, headers, body, query, region, account)
        if service != "scheduler":
            return arn
        return arn.replace(":schedule/default/", f":schedule/{group(body, query)}/")

    iam_actions.extract_resource_arn = corrected


def rules_have_the_arns_of_aws() -> None:
    """ministack adds the default bus to the ARNs of its rules."""
    extract = iam_actions.extract_resource_arn

    def corrected(service: str, *request: Any) -> str:
        arn = extract(service, *request)
        return arn.replace(":rule/default/", ":rule/") if service == "events" else arn

    iam_actions.extract_resource_arn = corrected


def simulations_belong_to_their_principals() -> None:
    """ministack requires permission for all resources to simulate the policies of a role."""
    extract = iam_actions.extract_resource_arn

    def corrected(service: str, method: str, path: str, headers: dict, body: bytes,
                  query: dict, region: str, account: str) -> str:
        principal = iam_actions._query_param(query, "PolicySourceArn") if service == "iam" else ""
        return principal or extract(service, method, path, headers, body, query, region, account)

    iam_actions.extract_resource_arn = corrected


def reads_of_functions_have_their_own_actions() -> None:
    """ministack requires the permission of a write for some reads, and that of another read for others."""
    action = iam_actions._lambda_action
    reads = {"concurrency": "GetFunctionConcurrency", "recursion-config": "GetFunctionRecursionConfig"}

    def corrected(method: str, path: str) -> str | None:
        read = reads.get(path.rpartition("/")[2]) if method == "GET" and "/functions/" in path else None
        return read or action(method, path)

    iam_actions._lambda_action = corrected


def group(body: bytes, query: dict[str, Any]) -> str:
    """Returns the group. It is in the body of a create or update, and in the query string of other requests."""
    found = json.loads(body).get("GroupName") if body else query.get("groupName")
    return (found[0] if isinstance(found, list) else found) or "default"
