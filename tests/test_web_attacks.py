"""No request takes the server down, or keeps the others waiting: small bodies and files that were made to cost much."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import socket
import struct
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from pydantic import ValidationError
from web import (
    Server,
    busy_pids,
    folder,
    gate,
    guard_of,
    nursery_pid,
    puzzle_and_truth,
    serving,
    stuck,
    until,
    worker_pids,
    zipped,
)

import jigsync
from jigsync.io.images import png_bytes
from jigsync.io.puzzle_folder import puzzle_members
from jigsync.values.errors import FormatError, InputError, OptionError
from jigsync.values.puzzle import Fragments, Puzzle
from jigsync.web.archive import entries_of
from jigsync.web.limits import MOST_FRAGMENTS, Limits, Refusal
from jigsync.web.models import ProjectModel, SolveOptions, Step
from jigsync.web.uploads import receive

PUZZLE, _ = puzzle_and_truth()
DROP = zipped(folder(PUZZLE))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@contextmanager
def connected(server: Server, said: bytes = b"") -> Iterator[socket.socket]:
    """A connection that has said this."""
    parts = urlsplit(server.url)
    with closing(socket.create_connection((parts.hostname, parts.port), timeout=20)) as client:
        client.sendall(said)
        yield client


def head(path: str, size: int) -> bytes:
    """The head of an upload of so many bytes."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    ).encode()


def uploaded(server: Server) -> str:
    answer = server.upload({"x.zip": DROP})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


# ---------------------------------------------------------------------------------------------- what is asked for


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (SolveOptions, {"exclude": [0] * 100_000}),
        (SolveOptions, {"exclude": ["a"] * 100_000}),
        (SolveOptions, {"pins": {str(k): 0 for k in range(100_000)}}),
        (SolveOptions, {str(k): 0 for k in range(100_000)}),
        (SolveOptions, {"pins": {"a": {str(k): 0 for k in range(100_000)}}}),
        (ProjectModel, {"steps": [{"pinned": [0] * 100_000}] * 100}),
        (ProjectModel, {"steps": [0] * 100_000}),
        (Step, {"solution": {"fragments": {str(k): 0 for k in range(100_000)}}}),
    ],
)
def test_what_is_wrong_is_said_once(model: Any, value: Any) -> None:
    """pydantic tells of every wrong item, in a hundred times the memory of the request."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    required = sum(field.is_required() for field in model.model_fields.values())
    assert caught.value.error_count() <= 1 + required
    assert len(str(caught.value)) < 10_000


def test_a_puzzle_may_have_no_more_fragments_than_lists_may_have_items() -> None:
    Limits(fragments=MOST_FRAGMENTS)
    with pytest.raises(OptionError, match="at most 5000"):
        Limits(fragments=MOST_FRAGMENTS + 1)


def test_bodies_are_as_large_as_they_need_to_be(server: Server) -> None:
    for path in (f"/api/puzzles/{'x' * 16}/jobs", "/api/cuts", "/api/cuts/preview"):
        answer = server.send(
            "POST", path, data=b'{"exclude":[' + b"0," * 600_000 + b"0]}", headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, "at most 1 million bytes" in answer.json()["detail"]) == (413, True)
    wide = b'{"steps": [{}], "name": "' + b"x" * 1_200_000 + b'"}'
    answer = server.send("POST", f"/api/puzzles/{uploaded(server)}/project", data=wide)
    assert (answer.status_code, "'name': String should have at most 100" in answer.json()["detail"]) == (422, True)


def test_a_solution_of_as_many_fragments_as_there_may_be_fits_into_a_body() -> None:
    one = {"row": 99, "col": 99, "turns": 3, "confidence": 0.1 + 0.2, "component": 100, "angle": -90.0}
    fragment = {"x" * 64: {**one, "x": 1234.5678901234567, "y": 1234.5678901234567}}
    assert len(json.dumps(fragment)) * MOST_FRAGMENTS < Limits(fragments=MOST_FRAGMENTS).solution_bytes


@pytest.mark.parametrize("grid", ["1000x1", "5x5", "9999x9999"])
def test_a_grid_has_at_most_four_cells_for_every_fragment(server: Server, grid: str) -> None:
    answer = server.post(f"/api/puzzles/{uploaded(server)}/jobs", {"grid": grid})
    assert (answer.status_code, "24 for these 6" in answer.json()["detail"]) == (422, True)
    refused = server.upload({"x.zip": DROP}, "/solve", options=json.dumps({"grid": grid}))
    assert (refused.status_code, refused.json()["detail"]) == (422, answer.json()["detail"])
    with pytest.raises(OptionError, match="at most 4 cells for every fragment, 24 for these 6"):
        jigsync.solve(PUZZLE, grid=grid)


# ---------------------------------------------------------------------------------------------- archives


def peak(work: Any) -> int:
    """Bytes that Python's objects took while it worked."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def files(*contents: bytes) -> list[tuple[str, io.BytesIO]]:
    return [(f"{k}.zip", io.BytesIO(content)) for k, content in enumerate(contents)]


def test_many_zips_have_one_budget() -> None:
    packed = zipped({"a.png": bytes(9_000_000)})
    limits = Limits(upload_bytes=10_000_000)
    assert len(entries_of(files(packed), limits)) == 1

    def all_of_them() -> None:
        with pytest.raises(Refusal, match="must unpack to at most 10 million bytes"):
            entries_of(files(*[packed] * 20), limits)

    assert peak(all_of_them) < 30_000_000
    small = zipped({f"{k}": b"" for k in range(9)})
    with pytest.raises(Refusal, match="must hold at most 10 files"):
        entries_of(files(small, small), Limits(files=10))
    with pytest.raises(Refusal, match="must hold at most 10 files"):
        entries_of([*files(small), ("a", io.BytesIO()), ("b", io.BytesIO())], Limits(files=10))


def test_an_entry_that_lies_about_its_size_is_read_in_blocks() -> None:
    honest = zipped({"a.png": bytes(60_000_000), "b.png": b"\0"})
    at = honest.index(b"PK\x01\x02")
    lie = honest[: at + 24] + struct.pack("<I", 10) + honest[at + 28 :]

    def unpack() -> None:
        with pytest.raises(FormatError, match="cannot be unpacked"):
            entries_of(files(lie), Limits())

    assert peak(unpack) < 2_000_000


def test_entries_that_share_their_bytes_are_counted_as_often_as_they_are_unpacked() -> None:
    packed = zipped({"a.png": bytes(5_000_000)})
    at, end = packed.index(b"PK\x01\x02"), packed.index(b"PK\x05\x06")
    entry = packed[at:end]
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 50, 50, 50 * len(entry), at, 0)
    with pytest.raises(Refusal, match="must unpack to at most"):
        entries_of(files(packed[:at] + 50 * entry + tail), Limits(upload_bytes=100_000_000))


@pytest.mark.parametrize("name", ["puzzle.json", "project.json"])
def test_json_in_a_zip_has_its_own_limit(name: str, tmp_path: Path) -> None:
    """A value takes thirty times the memory of its text, and a text of zeros a thousandth of its size in a zip."""
    deep = b'{"a": [' + b"[]," * 2_000_000 + b"0]}"
    packed = zipped({**folder(PUZZLE), name: deep})
    entries = entries_of(files(packed), Limits())
    assert len(packed) < 200_000

    def parse() -> None:
        with pytest.raises(InputError, match=rf"'{name}' must have at most 300000 bytes"):
            receive(entries, "auto", Limits(json_bytes=300_000, fragments=10, project_bytes=300_000), tmp_path)

    assert peak(parse) < 20_000_000


# ---------------------------------------------------------------------------------------------- worker processes


def test_what_takes_too_long_is_ended_and_nobody_waits_for_it() -> None:
    large = png_bytes(np.zeros((9000, 9000), dtype=np.uint8))
    with serving(Limits(small_seconds=0.2, work_seconds=0.3)) as server:
        answer = server.upload({"large.png": large}, kind="scan")
        assert (answer.status_code, "took longer than 0.3 s" in answer.json()["detail"]) == (413, True)
        until(lambda: server.upload({"x.zip": DROP}).status_code == 201)
        until(lambda: not [path for path in server.app.state.bench.room.iterdir() if path.name.startswith("task-")])
        assert not busy_pids(server)


def test_one_that_looked_small_is_worked_on_again_as_a_large_one() -> None:
    """Whoever is stuck is ended, and its task begun anew by another one."""
    with serving(Limits(small_seconds=0.2)) as server:
        held = uploaded(server)
        with gate(server) as closed:
            stuck_ones = set(worker_pids(server))
            closed.open(keep=stuck_ones)
            uploaded(server)
            assert server.get(f"/api/puzzles/{held}/fragments/f000").status_code == 200, "reading needs no worker"
        assert stuck_ones - set(worker_pids(server)), "it was not waited for"


def test_large_requests_leave_a_place_for_small_ones() -> None:
    over = threading.Event()
    with serving() as server:
        bench = server.app.state.bench

        def large(seconds: float) -> bool:
            return over.wait(30)

        async def crowd() -> list[bool]:
            return await asyncio.gather(*(bench.work(large, small=False) for _ in range(6)))

        with ThreadPoolExecutor(1) as clients:
            heavy = clients.submit(asyncio.run, crowd())
            until(lambda: bench._large._work_queue.qsize() >= 4)
            try:
                uploaded(server)
            finally:
                over.set()
            assert heavy.result() == [True] * 6


def test_what_needs_too_much_memory_is_refused() -> None:
    large = png_bytes(np.zeros((9000, 9000), dtype=np.uint8))
    with serving(Limits(worker_bytes=560_000_000, work_seconds=60)) as server:
        answer = server.upload({"large.png": large}, kind="scan")
        assert (answer.status_code, "more memory than the workbench has" in answer.json()["detail"]) == (413, True)
        uploaded(server)


def test_a_worker_that_dies_is_replaced_and_its_task_begun_anew(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server, ThreadPoolExecutor(1) as client:
        uploaded(server)
        until(lambda: not busy_pids(server))
        with gate(server) as closed:
            answer = client.submit(server.upload, {"x.zip": DROP})
            until(lambda: busy_pids(server))
            for pid in busy_pids(server):
                os.kill(pid, signal.SIGKILL)
            closed.open()
            assert answer.result().status_code == 201
        assert "A worker ended while it did 'receive_upload'" in caplog.text


def test_a_task_that_breaks_its_workers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = []

    def dies(*arguments: Any) -> Any:
        broken.append(arguments[1])
        raise EOFError

    with serving() as server:
        uploaded(server)
        until(lambda: not busy_pids(server))
        with monkeypatch.context() as patched:
            patched.setattr("jigsync.web.crew._Worker.do", dies)
            answer = server.upload({"x.zip": DROP})
        assert (answer.status_code, "broke down" in answer.json()["detail"]) == (422, True)
        assert broken == ["receive_upload"] * 2
        uploaded(server)


def test_without_the_process_that_makes_workers_another_one_is_started() -> None:
    with serving() as server:
        uploaded(server)
        until(lambda: not busy_pids(server))
        for pid in worker_pids(server):
            os.kill(pid, signal.SIGKILL)
        os.kill(nursery_pid(), signal.SIGKILL)
        uploaded(server)


def test_a_solver_that_does_not_stop_is_ended() -> None:
    with serving(Limits(stop_seconds=0.2, running_jobs=1)) as server:
        held = uploaded(server)
        with stuck(server, held) as job:
            [worker] = busy_pids(server)
            server.send("DELETE", f"/api/jobs/{job}")
            until(lambda: not server.app.state.bench.puzzles.get(held).busy)
        assert worker not in worker_pids(server)
        assert server.solved(held)["state"] == "done"


def test_a_solver_that_does_not_keep_its_time_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jigsync.web.jobs.GRACE", 0.1)
    with serving(Limits(running_jobs=1)) as server:
        held = uploaded(server)
        with gate(server):
            job = server.post(f"/api/puzzles/{held}/jobs", {"time_limit": 0.1}).json()["id"]
            last = list(server.events(job))[-1][1]
        assert (last["state"], "did not keep to its time limit" in last["reason"]) == ("failed", True)


# ---------------------------------------------------------------------------------------------- slow clients


def status(client: socket.socket) -> bytes:
    return client.recv(4096).split(b" ")[1]


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_half_a_head_is_not_waited_for() -> None:
    with serving(Limits(header_seconds=0.5)) as server:
        for said in (b"", b"GET / HTTP/1.1\r\nHost: lo", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET"):
            with connected(server, said) as client:
                while data := client.recv(1 << 16) if not said.endswith(b"lo") and said else b"":
                    if b"</html>" in data:
                        break
                assert ended(client), said


def test_a_body_that_is_dripped_ends_like_one_that_is_not_sent() -> None:
    with serving(Limits(silent_seconds=0.4, body_rate=1000)) as server, connected(server) as client:
        part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
        client.sendall(head("/api/puzzles", 90_000) + part)
        client.settimeout(0.02)
        answer = b""
        for _ in range(500):  # every byte in time, and half an hour for all of them
            client.sendall(b"-")
            try:
                answer = client.recv(4096)
                break
            except TimeoutError:
                continue
        assert b" 408 " in answer
        assert b"1,000 bytes per second" in answer


def test_an_answer_that_is_not_taken_is_not_kept() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (2, 1400, 1400, 4), dtype=np.uint8)
    noise[..., 3] = 255
    with serving(Limits(silent_seconds=0.5)) as server:
        held = server.upload(puzzle_members(Puzzle(Fragments(("a", "b"), tuple(noise))))).json()["id"]
        body = b'{"steps": [{}]}'
        said = f"POST /api/puzzles/{held}/project HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        with connected(server, said.encode() + body) as client:
            promised = int(re.search(rb"content-length: (\d+)", client.recv(4096))[1])  # type: ignore[index]
            until(lambda: guard_of(server).open == 0)
            taken = 0
            with suppress(ConnectionResetError):
                while data := client.recv(1 << 20):
                    taken += len(data)
        assert taken < promised, "what was left has been dropped"


def test_connections_that_ask_nothing_make_room() -> None:
    with serving(Limits(connections=8)) as server, ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connected(server, b"GET / HTTP/1.1\r\nHost: lo"))
        assert server.get("/api/about").status_code == 200


def test_reading_gets_through_while_uploads_hang() -> None:
    with serving(Limits(arriving_requests=3, open_requests=8, watchers=2)) as server, ExitStack() as stack:
        held = uploaded(server)
        for _ in range(3):
            stack.enter_context(connected(server, head("/api/puzzles", 9000) + b"-"))
        until(lambda: guard_of(server).bodies == 3)
        refused = server.upload({"x.zip": DROP})
        assert "3 requests are being sent" in refused.json()["detail"]
        assert int(refused.headers["Retry-After"]) > 0
        assert server.get(f"/api/puzzles/{held}").status_code == 200


def test_a_crowd_reads_while_jobs_hang_and_uploads_stall() -> None:
    """With the limits as they are: as many of everything else as there may be, and 32 who read."""
    limits = Limits()
    with serving() as server, ExitStack() as stack:
        held = uploaded(server)
        job = stack.enter_context(stuck(server, held))
        for _ in range(limits.waiting_jobs):
            server.post(f"/api/puzzles/{held}/jobs", {})
        for _ in range(limits.arriving_requests):
            stack.enter_context(connected(server, head("/api/puzzles", 9000) + b"-"))
        for _ in range(limits.watchers):
            stack.enter_context(
                connected(server, f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            )
        until(
            lambda: (guard_of(server).bodies, guard_of(server).watchers) == (limits.arriving_requests, limits.watchers)
        )
        paths = ("/", "/api/about", f"/api/puzzles/{held}", f"/api/puzzles/{held}/fragments/f000", f"/api/jobs/{job}")
        with ThreadPoolExecutor(32) as crowd:
            answers = list(crowd.map(lambda k: server.get(paths[k % len(paths)]).status_code, range(160)))
        assert answers == [200] * 160


def test_watching_leaves_room_for_reading() -> None:
    with serving(Limits(open_requests=8, watchers=2)) as server, ExitStack() as stack:
        held = uploaded(server)
        with stuck(server, held) as job:
            path = f"/api/jobs/{job}/events"
            for _ in range(2):
                stack.enter_context(server.send("GET", path, stream=True))
            refused = server.get(path)
            assert (refused.status_code, "2 streams of progress" in refused.json()["detail"]) == (503, True)
            assert server.get(f"/api/jobs/{job}").status_code == 200


def test_long_headers_are_refused(server: Server) -> None:
    answer = server.get("/api/about", headers={"X": "x" * 33_000})
    assert (answer.status_code, "at most 32,768 bytes" in answer.text) == (431, True)
    answer = server.get("/api/puzzles/" + "x" * 50_000)
    assert answer.status_code in (400, 431)


def test_a_zip_with_more_than_its_magic_is_what_it_says(tmp_path: Path) -> None:
    """zipfile finds archives behind anything; ours begin as archives do."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.png", b"")
    behind = b"GIF89a" + (tmp_path / "x.zip").read_bytes()
    assert [entry.data for entry in entries_of(files(behind), Limits())] == [behind]
