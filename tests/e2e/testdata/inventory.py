"""Prints the resources of a local cloud, one on a line. Run it with the Python of localstack/.venv. It omits calls that
the cloud does not have.

    inventory.py ENDPOINT
"""

import http
import sys

import botocore.config
import botocore.session
import jmespath
from botocore.exceptions import ClientError

# The calls that list resources, with the paths of the names in their responses.
LISTS = [
    ("cloudformation", "describe_stacks", "Stacks[?StackStatus != 'DELETE_COMPLETE'].StackName"),
    ("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    ("cloudwatch", "list_dashboards", "DashboardEntries[].DashboardName"),
    ("dynamodb", "list_tables", "TableNames[]"),
    ("dynamodb", "list_backups", "BackupSummaries[].BackupArn"),
    ("events", "list_rules", "Rules[].Name"),
    ("apigatewayv2", "get_apis", "Items[].Name"),
    ("iam", "list_roles", "Roles[].RoleName"),
    ("iam", "list_policies", "Policies[].PolicyName"),
    ("lambda", "list_functions", "Functions[].FunctionName"),
    ("lambda", "list_event_source_mappings", "EventSourceMappings[].UUID"),
    ("logs", "describe_log_groups", "logGroups[].logGroupName"),
    ("s3", "list_buckets", "Buckets[].Name"),
    ("scheduler", "list_schedules", "Schedules[].Name"),
    ("scheduler", "list_schedule_groups", "ScheduleGroups[].Name"),
    ("sqs", "list_queues", "QueueUrls[]"),
    ("ssm", "describe_parameters", "Parameters[].Name"),
]

CONFIG = botocore.config.Config(retries={"total_max_attempts": 1})


def main() -> None:
    session = botocore.session.Session()
    for service, operation, path in LISTS:
        client = session.create_client(
            service, region_name="us-east-1", endpoint_url=sys.argv[1], aws_access_key_id="test",
            aws_secret_access_key="test", config=CONFIG)
        arguments = {"Scope": "Local"} if operation == "list_policies" else {}
        try:
            if client.can_paginate(operation):
                names = list(client.get_paginator(operation).paginate(**arguments).search(path))
            else:
                names = jmespath.search(path, getattr(client, operation)(**arguments))
        except ClientError as error:
            unknown = error.response["Error"]["Code"] == "UnknownOperationException"
            if not unknown and error.response["ResponseMetadata"]["HTTPStatusCode"] != http.HTTPStatus.NOT_IMPLEMENTED:
                raise
            continue
        for name in names or ():
            if name is not None:
                print(service, operation, name)


main()
