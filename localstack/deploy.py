"""Deploys the golden template with host-built binaries to a local cloud.

It does what `cdk deploy` does: it zips the binaries, uploads them to the asset bucket under their hashes, and creates
or updates the stack.

    deploy.py --endpoint http://127.0.0.1:4566 --binaries DIR [--hub NAME] [--param Name=value ...] [--template FILE]
"""

from __future__ import annotations

import venv_python

if __name__ == "__main__":
    venv_python.run_inside()

import argparse
import functools
import hashlib
import io
import json
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import botocore.config
import botocore.session
from botocore.exceptions import ClientError

import cloud

GOLDEN = Path(__file__).resolve().parent / "template.golden.json"
BINARIES = ("orchestrator", "worker", "renewer", "api")
DEPLOY_SECONDS = 300
UPLOADED: set[tuple[str, str]] = set()  # endpoints and keys; a key is the hash of its content
Say = Callable[[str], None]


# All clients share one session, because reading the models of a session is slow.
SESSION = botocore.session.Session()


def aws(endpoint: str, service: str) -> Any:
    """Returns a client of a local cloud that ignores the caller's own AWS settings."""
    return SESSION.create_client(
        service, region_name=cloud.REGION, endpoint_url=endpoint,
        aws_access_key_id=cloud.CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=cloud.CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        config=botocore.config.Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 2}))


def deploy(endpoint: str, hub: str, binaries: Path, parameters: dict[str, str], say: Say,
           golden: Path = GOLDEN) -> dict[str, Any]:
    """Creates or updates the hub's stack and returns its names and its configuration."""
    bucket = asset_bucket(endpoint)
    template, assets = fill_in(golden.read_text(), binaries)
    url = upload(endpoint, bucket, template, assets)
    say(f"uploaded {len(assets)} functions, {sum(map(len, assets.values())) // 1024} KiB")
    stack = f"perdure-{hub}"
    change(endpoint, stack, url, {"Hub": hub, "Architecture": cloud.architecture(), **parameters})
    outputs = wait(endpoint, stack, template.count('"Type": "AWS::'), say)
    config = aws(endpoint, "ssm").get_parameter(Name=outputs["ConfigParameter"])["Parameter"]["Value"]
    return {"stack": stack, "hub": hub, "apiHost": urlsplit(outputs["ApiUrl"]).netloc, **json.loads(config)}


def asset_bucket(endpoint: str) -> str:
    """Creates the asset bucket like `cdk bootstrap` and returns its name."""
    account = aws(endpoint, "sts").get_caller_identity()["Account"]
    name = f"cdk-hnb659fds-assets-{account}-{cloud.REGION}"
    try:
        aws(endpoint, "s3").create_bucket(Bucket=name)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            raise
    return name


def fill_in(golden: str, binaries: Path) -> tuple[str, dict[str, bytes]]:
    """Replaces each asset-<binary> of the golden template with the hash of the binary's zip file."""
    assets = {}
    for name in BINARIES:
        zipped = zip_bootstrap(binaries / name / "bootstrap")
        digest = hashlib.sha256(zipped).hexdigest()
        golden = golden.replace(f'"asset-{name}.zip"', f'"{digest}.zip"').replace(f'"asset-{name}"', f'"{digest}"')
        assets[f"{digest}.zip"] = zipped
    return golden, assets


def zip_bootstrap(path: Path) -> bytes:
    state = path.stat()
    return zip_file(path, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=len(BINARIES))
def zip_file(path: Path, _changed: int, _size: int) -> bytes:
    """Zips a binary. The same binary results in the same bytes, because the time, the owner and the compression are
    fixed. An unchanged binary is zipped once."""
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(entry, path.read_bytes(), compresslevel=1)
    return buffer.getvalue()


def upload(endpoint: str, bucket: str, template: str, assets: dict[str, bytes]) -> str:
    """Uploads the template and returns its URL, because it exceeds the 51,200 bytes that fit in a request."""
    s3 = aws(endpoint, "s3")
    for key, body in assets.items():
        if (endpoint, key) not in UPLOADED:
            s3.put_object(Bucket=bucket, Key=key, Body=body)
            UPLOADED.add((endpoint, key))
    key = hashlib.sha256(template.encode()).hexdigest() + ".json"
    s3.put_object(Bucket=bucket, Key=key, Body=template.encode())
    return f"{endpoint}/{bucket}/{key}"


def change(endpoint: str, stack: str, url: str, parameters: dict[str, str]) -> None:
    request = {
        "StackName": stack, "TemplateURL": url, "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
        "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
    }
    cloudformation = aws(endpoint, "cloudformation")
    try:
        cloudformation.create_stack(**request)
    except ClientError as error:
        if error.response["Error"]["Code"] != "AlreadyExistsException":
            raise
        update(cloudformation, request)


def update(cloudformation: Any, request: dict[str, Any]) -> None:
    try:
        cloudformation.update_stack(**request)
    except ClientError as error:
        if "No updates" not in str(error):
            raise


def wait(endpoint: str, stack: str, resources: int, say: Say) -> dict[str, str]:
    """Waits for the stack, reports the progress and returns the stack's outputs."""
    cloudformation = aws(endpoint, "cloudformation")
    deadline = time.monotonic() + DEPLOY_SECONDS
    said = time.monotonic()
    while time.monotonic() < deadline:
        found = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        status = found["StackStatus"]
        if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            return {o["OutputKey"]: o["OutputValue"] for o in found.get("Outputs", [])}
        if not status.endswith("_IN_PROGRESS") or "ROLLBACK" in status:
            raise cloud.Failed(f"stack {stack} is {status}:\n{failures(cloudformation, stack)}")
        if time.monotonic() - said > 2:
            said = time.monotonic()
            say(f"{finished(cloudformation, stack)} of {resources} resources")
        time.sleep(0.1)
    raise cloud.Failed(f"stack {stack} took longer than {DEPLOY_SECONDS} s")


def finished(cloudformation: Any, stack: str) -> int:
    found = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    return sum(r["ResourceStatus"].endswith("_COMPLETE") for r in found)


def failures(cloudformation: Any, stack: str) -> str:
    """Returns the resources that failed, with the reasons."""
    events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    lines = [f"  {e['LogicalResourceId']} ({e.get('ResourceType', '?')}): {e.get('ResourceStatusReason', 'no reason')}"
             for e in reversed(events) if e["ResourceStatus"].endswith("_FAILED")]
    return "\n".join(lines) or "  no event has a reason"


def parameter(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not Name=value")
    return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--hub", default="default")
    parser.add_argument("--binaries", type=Path, required=True, help="directory with <function>/bootstrap files")
    parser.add_argument("--param", type=parameter, action="append", default=[], metavar="Name=value")
    parser.add_argument("--template", type=Path, default=GOLDEN, help="a golden template of another release")
    args = parser.parse_args()
    try:
        found = deploy(args.endpoint, args.hub, args.binaries, dict(args.param),
                       lambda text: print(text, file=sys.stderr), args.template)
    except (cloud.Failed, OSError) as error:
        sys.exit(f"deploy: {error}")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
