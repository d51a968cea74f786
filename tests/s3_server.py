"""A stand-in for S3 on this machine, as a process of its own, and the environment that leads to it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

BUCKET = "jigsync"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Yields the environment variables; there is one empty bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 120
        while True:
            try:
                urlopen(Request(f"{url}/{BUCKET}", method="PUT"), timeout=10).close()
                break
            except OSError:
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.1)
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "me",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        process.kill()
        process.wait()


def client(env: dict[str, str]) -> Any:
    """Amazon's own client for it."""
    import botocore.session

    made: Any = botocore.session.get_session()
    return made.create_client(
        "s3",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        region_name=env["AWS_DEFAULT_REGION"],
    )
