"""Corrects how ministack reads requests when it enforces IAM.

ministack differs from AWS in three ways. With these corrections, a function is denied a call only if its role in the
template lacks the permission.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core import iam_actions, iam_evaluator


def correct() -> None:
    batches_need_what_single_messages_need()
    schedules_belong_to_their_groups()
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


def group(body: bytes, query: dict[str, Any]) -> str:
    """Returns the group. It is in the body of a create or update, and in the query string of other requests."""
    found = json.loads(body).get("GroupName") if body else query.get("groupName")
    return (found[0] if isinstance(found, list) else found) or "default"
