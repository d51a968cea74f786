"""What a hostile or careless client cannot do to the workbench."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from web import Server, folder, gate, puzzle_and_truth, serving, stuck, until, zipped

from jigsync.io.images import png_bytes
from jigsync.web.limits import Limits

PUZZLE, _ = puzzle_and_truth()
DROP = zipped(folder(PUZZLE))
TIGHT = Limits(
    upload_bytes=400_000,
    pixels=120_000,
    fragments=10,
    files=20,
    running_jobs=1,
    waiting_jobs=1,
    puzzles=4,
    json_bytes=300_000,
    idle_seconds=1000,
    silent_seconds=0.5,
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(names=("bench.example",)) as running:
        yield running


@pytest.fixture
def tight() -> Iterator[Server]:
    with serving(TIGHT) as running:
        yield running


# ---------------------------------------------------------------------------------------------- other sites


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "127.0.0.1:x"]
)
def test_other_names_are_refused(server: Server, host: str) -> None:
    for path in ("/", "/api/about", "/openapi.json", "/static/main.js"):
        answer = server.get(path, headers={"Host": host})
        assert answer.status_code in (400, 403)
    assert server.post("/api/cuts", {"picture": "coffee"}, headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8765", "127.0.0.1", "[::1]:8765", "192.168.1.7:80", "bench.example"]
)
def test_own_names_and_addresses_are_served(server: Server, host: str) -> None:
    assert server.get("/api/about", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_other_origins_are_refused(server: Server, origin: str) -> None:
    for method, path in (("POST", "/api/cuts"), ("GET", "/api/about"), ("POST", "/solve"), ("DELETE", "/api/jobs/x")):
        answer = server.send(method, path, headers={"Origin": origin})
        assert (answer.status_code, answer.json()["detail"]) == (403, "Requests from other sites are refused.")
        assert "access-control-allow-origin" not in answer.headers


def test_own_origin_is_served(server: Server) -> None:
    assert server.get("/api/about", headers={"Origin": server.url, "Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_requests_that_other_sites_cause_are_refused(server: Server) -> None:
    for site in ("cross-site", "same-site"):
        assert server.get("/api/about", headers={"Sec-Fetch-Site": site}).status_code == 403
        linked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert server.get("/", headers=linked).status_code == 200
        assert server.get("/api/about", headers=linked).status_code == 403


def test_every_answer_carries_the_headers(server: Server) -> None:
    for path in ("/", "/api/about", "/static/main.js", "/no/such/thing", "/api/jobs/none"):
        headers = server.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_the_page_uses_nothing_from_elsewhere(server: Server) -> None:
    static = Path(__file__).parents[1] / "src" / "jigsync" / "web" / "static"
    for path in sorted(static.iterdir()):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text.replace("http://www.w3.org/", "").replace("https://www.w3.org/", ""), path.name
        assert server.get(f"/static/{path.name}").content == path.read_bytes()
    page = (static / "index.html").read_text(encoding="utf-8")
    assert "style=" not in page
    assert "onclick" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2fetc%2fpasswd",
        "/static/",
        "//etc/passwd",
        "/api/puzzles/..%2f..%2fetc/fragments/passwd",
        "/api/puzzles/%2e%2e",
        "/../../../../etc/passwd",
    ],
)
def test_no_file_can_be_reached(server: Server, path: str) -> None:
    parts = urlsplit(server.url)
    with socket.create_connection(
        (parts.hostname, parts.port), timeout=10
    ) as client:  # clients tidy paths, sockets do not
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.split(b" ")[1] in (b"404", b"422", b"400")
    assert b"root:" not in answer
    assert b"import" not in answer


# ---------------------------------------------------------------------------------------------- uploads


@pytest.mark.parametrize(
    "name",
    ["../../evil.png", "/etc/evil.png", "a/../../evil.png", "..\\evil.png", "C:\\evil.png", "C:/evil.png"],
)
def test_zip_entries_cannot_escape(server: Server, name: str) -> None:
    room = server.app.state.bench.room
    before = set(os.listdir(room)), set(os.listdir(room.parent))
    picture = png_bytes(np.zeros((8, 8, 3), dtype=np.uint8))
    # zipfile would tidy some of these names itself: put them into the bytes.
    stand_in = "n" * len(name)
    content = zipped({stand_in: picture, "b.png": picture}).replace(stand_in.encode(), name.encode())
    answer = server.upload({"x.zip": content})
    assert answer.status_code == 422, answer.text
    assert "leads outside" in answer.json()["detail"] or "cannot be unpacked" in answer.json()["detail"]
    until(lambda: (set(os.listdir(room)), set(os.listdir(room.parent))) == before)


def test_a_file_name_cannot_escape(server: Server) -> None:
    picture = png_bytes(np.full((8, 8, 3), 7, dtype=np.uint8))
    answer = server.upload({"../../../a.png": picture, "b.png": picture})
    assert "leads outside" in answer.json()["detail"]
    answer = server.upload({"<script>alert(1)</script>.png": picture, "-rf.png": picture})
    assert [f["id"] for f in answer.json()["fragments"]] == ["rf", "script"]


def test_links_in_a_zip_are_not_followed(server: Server) -> None:
    buffer = io.BytesIO(DROP)
    with zipfile.ZipFile(buffer, "a") as archive:
        link = zipfile.ZipInfo("fragments/link.png")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    answer = server.upload({"x.zip": buffer.getvalue()})
    assert [f["id"] for f in answer.json()["fragments"]] == list(PUZZLE.ids)


def test_a_puzzle_json_cannot_point_elsewhere(server: Server) -> None:
    head = json.loads(folder(PUZZLE)["puzzle.json"])
    for file in ("/etc/hostname", "../../../etc/hostname", "fragments/../../x.png"):
        head["fragments"][0]["file"] = file
        answer = server.upload({"x.zip": zipped({**folder(PUZZLE), "puzzle.json": json.dumps(head).encode()})})
        assert (answer.status_code, "a file inside the puzzle's folder" in answer.json()["detail"]) == (422, True)


def bomb_of_zeros(size: int) -> bytes:
    return zipped({"a.png": b"\0" * size, "b.png": b"\0"})


def lying(content: bytes, size: int) -> bytes:
    """A zip whose directory claims that its first entry unpacks to `size` bytes."""
    at = content.index(b"PK\x01\x02")
    return content[: at + 24] + struct.pack("<I", size) + content[at + 28 :]


def picture_bomb(side: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("1", (side, side)).save(buffer, "PNG")
    return buffer.getvalue()


def test_bombs_do_not_go_off(tight: Server) -> None:
    small = png_bytes(np.zeros((8, 8, 3), dtype=np.uint8))
    for files, words in (
        ({"x.zip": bomb_of_zeros(40_000_000)}, "must unpack to at most 400,000 bytes"),
        ({"a.png": picture_bomb(6000), "b.png": small}, "must have at most 120,000 pixels. It has 6000 x 6000"),
        ({"a.png": picture_bomb(300), "b.png": picture_bomb(300)}, "together must have at most 120,000 pixels"),
        ({f"{k}.png": small for k in range(11)}, "must have at most 10 fragments. These are 11"),
        ({"x.zip": zipped({f"{k}.txt": b"" for k in range(21)})}, "must hold at most 20 files"),
        ({f"{k}.txt": b"?" for k in range(21)}, "must hold at most 20 files"),
    ):
        answer = tight.upload(files)
        assert (answer.status_code, words in answer.json()["detail"]) == (413, True), answer.text
    lie = tight.upload({"x.zip": lying(bomb_of_zeros(40_000_000), 1000)})
    assert (lie.status_code, "cannot be unpacked" in lie.json()["detail"]) == (422, True)
    directory = DROP.index(b"PK\x05\x06")
    huge = DROP[: directory + 12] + struct.pack("<I", 2**31) + DROP[directory + 16 :]
    assert tight.upload({"x.zip": huge}).status_code == 413
    assert tight.post("/api/cuts", {"picture": "coffee", "rows": 100, "cols": 100}).status_code == 413


def test_uploads_that_are_too_large_are_cut_off(tight: Server) -> None:
    answer = tight.upload({"x.png": b"x" * 500_000})
    assert (answer.status_code, "must have at most 400,000 bytes" in answer.json()["detail"]) == (413, True)
    parts = urlsplit(tight.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as client:
        head = b"POST /api/cuts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(5):
            client.sendall(b"186a0\r\n" + b" " * 100_000 + b"\r\n")
        assert client.recv(4096).split(b" ")[1] == b"413"


def test_large_values_are_refused(tight: Server) -> None:
    answer = tight.post("/api/cuts", {"picture": "x" * 310_000})
    assert (answer.status_code, "must have at most 300,000 bytes" in answer.json()["detail"]) == (413, True)


def test_too_much_at_the_same_time_is_refused() -> None:
    with serving(Limits(arriving_bytes=1000)) as running:
        answer = running.upload({"x.zip": DROP})
        assert (answer.status_code, "at the same time" in answer.json()["detail"]) == (503, True)
        assert running.get("/api/about").status_code == 200
        small = png_bytes(np.zeros((2, 2, 3), dtype=np.uint8))
        assert running.upload({"a.png": small, "b.png": small}).status_code == 201, "what has left counts no more"


def test_the_private_folder_is_private_and_removed() -> None:
    with serving() as running:
        room = running.app.state.bench.room
        assert room.stat().st_mode & 0o077 == 0
        puzzle = running.upload({"x.zip": DROP}).json()["id"]
        until(lambda: len(list(room.iterdir())) == 1)
        [pixels] = room.iterdir()
        assert (pixels.name, pixels.stat().st_mode & 0o077) == (f"puzzle-{puzzle}", 0)
        running.send("DELETE", f"/api/puzzles/{puzzle}")
        assert list(room.iterdir()) == []
        assert running.upload({"x.zip": DROP}).status_code == 201
    assert not room.exists()


# ---------------------------------------------------------------------------------------------- crowds


def test_fifty_uploads_at_once(server: Server) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: server.upload({"x.zip": DROP}), range(50)))
    assert [answer.status_code for answer in answers] == [201] * 50
    assert len({answer.json()["id"] for answer in answers}) == 50
    for answer in answers:
        assert server.send("DELETE", f"/api/puzzles/{answer.json()['id']}").status_code == 204


def test_too_many_jobs_are_refused(tight: Server) -> None:
    puzzle = tight.upload({"x.zip": DROP}).json()["id"]
    with gate(tight):  # no job gets past its first stage
        jobs = [tight.post(f"/api/puzzles/{puzzle}/jobs", {}) for _ in range(3)]
    assert [job.status_code for job in jobs] == [202, 202, 429]
    assert "2 puzzles are being solved or wait" in jobs[2].json()["detail"]
    assert jobs[2].headers["retry-after"]
    assert [list(tight.events(job.json()["id"]))[-1][1]["state"] for job in jobs[:2]] == ["done", "done"]
    assert tight.post(f"/api/puzzles/{puzzle}/jobs", {}).status_code == 202


@pytest.fixture
def impatient() -> Iterator[Server]:
    with serving(replace(TIGHT, unwatched_seconds=0.6)) as running:
        yield running


def test_jobs_that_nobody_waits_for_make_room(impatient: Server) -> None:
    tight = impatient
    puzzle = tight.upload({"x.zip": DROP}).json()["id"]
    with gate(tight):
        jobs = [tight.post(f"/api/puzzles/{puzzle}/jobs", {}).json()["id"] for _ in range(2)]
        time.sleep(0.8)
    all_jobs = tight.app.state.bench.jobs._jobs
    until(lambda: all(job.finished for job in all_jobs.values()))
    assert [tight.get(f"/api/jobs/{job}").json()["state"] for job in jobs] == ["cancelled", "cancelled"]


def test_letting_a_puzzle_go_stops_its_jobs(tight: Server) -> None:
    puzzle = tight.upload({"x.zip": DROP}).json()["id"]
    with gate(tight):
        job = tight.post(f"/api/puzzles/{puzzle}/jobs", {}).json()["id"]
        assert tight.send("DELETE", f"/api/puzzles/{puzzle}").status_code == 204
        assert tight.get(f"/api/jobs/{job}").json()["state"] == "cancelled"


def test_a_waiting_job_is_cancelled_at_once(tight: Server) -> None:
    puzzle = tight.upload({"x.zip": DROP}).json()["id"]
    with gate(tight):
        first, second = (tight.post(f"/api/puzzles/{puzzle}/jobs", {}).json()["id"] for _ in range(2))
        for job in (second, first):
            tight.send("DELETE", f"/api/jobs/{job}")
            assert tight.get(f"/api/jobs/{job}").json()["state"] == "cancelled"


def test_a_full_workbench_says_so(tight: Server) -> None:
    answers = [tight.upload({"x.zip": DROP}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [201] * 4 + [503]
    assert "it holds 4 puzzles" in answers[-1].json()["detail"]
    tight.send("DELETE", f"/api/puzzles/{answers[0].json()['id']}")
    assert tight.upload({"x.zip": DROP}).status_code == 201


def test_what_was_not_used_makes_room() -> None:
    with serving(Limits(puzzles=2, idle_seconds=0)) as running:
        first, second, third = (running.upload({"x.zip": DROP}).json()["id"] for _ in range(3))
        assert [running.get(f"/api/puzzles/{name}").status_code for name in (first, second, third)] == [404, 200, 200]


def test_silent_and_dead_clients_hold_up_nobody(tight: Server) -> None:
    parts = urlsplit(tight.url)
    puzzle = tight.upload({"x.zip": DROP}).json()["id"]
    clients = []
    for _ in range(20):
        client = socket.create_connection((parts.hostname, parts.port), timeout=10)
        client.sendall(
            b"POST /api/puzzles HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
        )
        clients.append(client)
    job = tight.post(f"/api/puzzles/{puzzle}/jobs", {}).json()["id"]
    for _ in range(5):  # watchers that never read, and leave without a word
        watcher = socket.create_connection((parts.hostname, parts.port), timeout=10)
        watcher.sendall(f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        watcher.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        watcher.close()
    assert tight.get("/api/about").status_code == 200
    assert list(tight.events(job))[-1][1]["state"] == "done"
    for client in clients:
        assert client.recv(4096).split(b" ")[1] == b"408"
        client.close()


def test_hanging_up_cancels_a_solve(tight: Server) -> None:
    jobs = tight.app.state.bench.jobs
    parts = urlsplit(tight.url)
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="x.zip"\r\n\r\n' + DROP + b"\r\n--x--\r\n"
    head = f"POST /solve HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    blocker = tight.upload({"x.zip": DROP}).json()["id"]
    with stuck(tight, blocker):
        client = socket.create_connection((parts.hostname, parts.port), timeout=10)
        client.sendall(head.encode() + b"Content-Type: multipart/form-data; boundary=x\r\n\r\n" + body)
        until(lambda: len(jobs._jobs) == 2)
        job = list(jobs._jobs.values())[1]
        client.close()
        until(lambda: job.state == "cancelled")
        until(lambda: [other.state for other in jobs._jobs.values()] == ["running"])
    until(lambda: len(tight.app.state.bench.puzzles) == 1)


def test_stopping_the_server_stops_its_jobs() -> None:
    before = set(threading.enumerate())
    with serving() as running:
        puzzle = running.post("/api/cuts", {"picture": "coffee", "rows": 6, "cols": 7, "shape": 0}).json()["id"]
        running.post(f"/api/puzzles/{puzzle}/jobs", {})
    assert not {t.name for t in set(threading.enumerate()) - before if t.name.startswith(("solve", "work"))}
