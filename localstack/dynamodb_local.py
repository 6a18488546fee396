"""How DynamoDB Local is started: as AWS documents it.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.UsageNotes.html
"""

from __future__ import annotations

MAIN = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
# For a start in a second, and a heap that no test exceeds.
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g"]


def command(java: str, jars: str, port: int) -> list[str]:
    """Serves from memory. It listens on every interface: no option says otherwise."""
    return [java, *JVM, "-cp", f"{jars}/*", MAIN, "-port", str(port), "-inMemory", "-disableTelemetry"]
