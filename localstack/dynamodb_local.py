"""The command that starts DynamoDB Local, as AWS documents it.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.UsageNotes.html
"""

from __future__ import annotations

MAIN = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
# It starts within a second, and no test needs a larger heap.
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g"]


def command(java: str, jars: str, port: int) -> list[str]:
    """Returns the command for an in-memory server. The server listens on every interface, because it has no option to
    select one."""
    return [java, *JVM, "-cp", f"{jars}/*", MAIN, "-port", str(port), "-inMemory", "-disableTelemetry"]
