"""Prints the resources of a local cloud, one on a line. Run it with the Python of localstack/.venv.

    inventory.py ENDPOINT
"""

import sys

import botocore.session
import jmespath

# The calls that list resources, with the paths of the names in their responses.
LISTS = [
    ("cloudformation", "describe_stacks", "Stacks[].StackName"),
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


def main() -> None:
    session = botocore.session.Session()
    for service, operation, path in LISTS:
        client = session.create_client(
            service, region_name="us-east-1", endpoint_url=sys.argv[1], aws_access_key_id="test",
            aws_secret_access_key="test")
        arguments = {"Scope": "Local"} if operation == "list_policies" else {}
        if client.can_paginate(operation):
            names = client.get_paginator(operation).paginate(**arguments).search(path)
        else:
            names = jmespath.search(path, getattr(client, operation)(**arguments))
        for name in names or ():
            if name is not None:
                print(service, operation, name)


main()
