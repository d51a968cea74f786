"""Faults of `jigsync serve --keep`: a client that does not give up, a server that is killed under it."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from served import Client, Packed, Served, packed_puzzles

PUZZLES: Final = 4
"""Puzzles of one round."""
IN_A_ROW: Final = 6
"""Kills of one round before it is left to end: on a busy machine a solve may take longer than a server lives."""
GIVE_UP: Final = 900.0
"""Seconds after which a client counts as lost."""


class Patient:
    """A client that repeats what was not answered, and counts it: such a request may have been done."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.broken_off = 0
        self.uploaded: list[str] = []
        self.started: list[str] = []

    def answer(self, puzzle: Packed) -> dict[str, Any]:
        """Uploads and solves a puzzle, whatever happens to the server; the last state of its job."""
        held = json.loads(self._send(lambda client: client.upload("/api/puzzles", puzzle)))["id"]
        self.uploaded.append(held)
        job = json.loads(self._send(lambda client: client.send("POST", f"/api/puzzles/{held}/jobs", {"seed": 7})))["id"]
        self.started.append(job)
        while True:
            stream = self._send(lambda client: client.send("GET", f"/api/jobs/{job}/events"))
            if b"event: end" in stream:  # a kill cuts the stream short
                ended: dict[str, Any] = json.loads(stream.decode().strip().rpartition("\ndata: ")[2])
                return ended

    def _send(self, ask: Callable[[Any], tuple[int, Any, bytes]]) -> bytes:
        end = time.monotonic() + GIVE_UP
        while time.monotonic() < end:
            client = Client("127.0.0.1", self.port)
            try:
                status, _, body = ask(client)
            except ConnectionRefusedError:
                time.sleep(0.2)
                continue
            except (OSError, http.client.HTTPException):
                self.broken_off += 1
                continue
            finally:
                client.close()
            if status >= 400:
                raise RuntimeError(f"It was answered {status}: {body[:300]!r}")
            return body
        raise RuntimeError("The server did not come back.")


def plain(job: dict[str, Any]) -> str:
    """A job's answer without ids and clocks."""
    solution = {key: value for key, value in job["shown"]["solution"].items() if key != "seconds"}
    return json.dumps([job["state"], job["reason"], solution])


def undisturbed(folder: Path, puzzles: list[Packed]) -> tuple[list[str], float]:
    """The answers, and seconds of a round, of a server that nothing happens to."""
    served = Served(folder, "--keep", str(folder / "kept"))
    begun = time.monotonic()
    try:
        client = Patient(served.port)
        return [plain(client.answer(puzzle)) for puzzle in puzzles], time.monotonic() - begun
    finally:
        served.stop()


def serve_kills(folder: Path, count: int, seed: int) -> tuple[int, str, str]:
    """(kills, outcome, what is wrong): rounds of puzzles while the server is killed and started again."""
    rng = np.random.default_rng(seed)
    puzzles = packed_puzzles(PUZZLES)
    reference, seconds = undisturbed(folder / "undisturbed", puzzles)
    done = rounds = 0
    wrong = ""
    while done < count and not wrong:
        here = folder / f"round-{rounds}"
        killed, wrong = killed_round(here, puzzles, reference, min(IN_A_ROW, count - done), seconds, rng)
        done += killed
        rounds += 1
        print(f"  {done} of {count} kills of serve", file=sys.stderr, flush=True)
    told = f"{rounds} rounds of {PUZZLES} puzzles, every one answered as by the undisturbed server"
    return done, told, wrong


def killed_round(
    folder: Path, puzzles: list[Packed], reference: list[str], most: int, seconds: float, rng: np.random.Generator
) -> tuple[int, str]:
    """(kills, what is wrong) of one round, which takes so many seconds undisturbed; at most so many kills."""
    options = ("--keep", str(folder / "kept"))
    served = Served(folder, *options)
    client = Patient(served.port)
    answers: list[str] = []
    failure: list[str] = []

    def ask() -> None:
        try:
            answers.extend(plain(client.answer(puzzle)) for puzzle in puzzles)
        except Exception as error:
            failure.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=ask)
    thread.start()
    killed = 0
    try:
        while thread.is_alive() and killed < most:
            thread.join(float(rng.uniform(0.05, 0.6)) * seconds)
            if thread.is_alive():
                served.kill()
                killed += 1
                served = Served(folder, *options, port=client.port)
        thread.join(GIVE_UP)
        wrong = failure[0] if failure else "" if answers == reference else "another answer than undisturbed"
        return killed, wrong or _held(served, folder, client)
    finally:
        served.stop()


def _held(served: Served, folder: Path, client: Patient) -> str:
    """Is everything the client knows of there, and nothing else but what it was not answered about?"""
    asking = served.client()
    paths = [f"/api/puzzles/{name}" for name in client.uploaded] + [f"/api/jobs/{name}" for name in client.started]
    lost = [path for path in paths if asking.send("GET", path)[0] != 200]
    asking.close()
    if lost:
        return f"lost: {lost[0]} ({len(lost)})"
    for kind, known in (("puzzles", client.uploaded), ("jobs", client.started)):
        there = len([path for path in (folder / "kept" / kind).iterdir() if not path.name.startswith(".")])
        if not len(known) <= there <= len(known) + client.broken_off:
            return f"{there} {kind} are kept, {len(known)} were asked for, {client.broken_off} requests broke off"
    rooms = len(list((folder / "tmp").glob("jigsync-*")))
    return "" if rooms == 1 else f"{rooms} private folders: those of killed servers were not removed"


def serve_full(disk: Path, enlarge: Callable[[], None]) -> tuple[str, str]:
    """(outcome, what is wrong): uploads until the disk is full, then once more with more room."""
    [puzzle] = packed_puzzles(1)
    served = Served(disk, "--keep", str(disk / "kept"))
    try:
        client = served.client()
        held: list[str] = []
        for _ in range(50):
            status, headers, body = client.upload("/api/puzzles", puzzle)
            if status != 201:
                break
            held.append(json.loads(body)["id"])
        later = {name.lower(): value for name, value in headers.items()}.get("retry-after")
        if status != 503 or b"No space left on device" not in body or later is None:
            return "", f"answered {status} {body[:200]!r}, Retry-After {later}"
        enlarge()
        status, _, body = client.upload("/api/puzzles", puzzle)
        gone = [name for name in held if client.send("GET", f"/api/puzzles/{name}")[0] != 200]
        client.close()
        if status != 201 or gone:
            return "", f"with more room: {status} {body[:200]!r}, {len(gone)} puzzles lost"
    finally:
        served.stop()
    said = served.said.read_text(encoding="utf-8")
    return f"503 with the reason after {len(held)} uploads; goes on with more room", (
        "a traceback" if "Traceback" in said else ""
    )


def serve_damage(folder: Path, seed: int) -> Iterator[tuple[str, int, str, str]]:
    """(fault, times, outcome, what is wrong) of damaged kept files, each after a restart."""
    rng = np.random.default_rng(seed)
    [puzzle] = packed_puzzles(1)
    served = Served(folder, "--keep", str(folder / "kept"))
    patient = Patient(served.port)
    expected = plain(patient.answer(puzzle))
    patient.answer(puzzle)
    served.stop()
    whole, hurt = ((patient.uploaded[k], patient.started[k]) for k in (0, 1))
    for what, name in (("puzzles", f"{hurt[0]}.zip"), ("jobs", f"{hurt[1]}.json")):
        path = folder / "kept" / what / name
        content = path.read_bytes()
        broken = bytearray(content)
        place = int(rng.integers(len(content) // 4, len(content) // 2))
        broken[place] ^= 2
        for how, bad in (("flipped", bytes(broken)), ("cut_off", content[: len(content) // 2])):
            path.write_bytes(bad)
            served = Served(folder, "--keep", str(folder / "kept"))
            try:
                client = served.client()
                gone = client.send("GET", f"/api/{what}/{path.stem}")[0]
                job = json.loads(client.send("GET", f"/api/jobs/{whole[1]}")[2])
                client.close()
            finally:
                served.stop()
            named = str(path) in served.said.read_text(encoding="utf-8")
            wrong = "" if named and gone == 404 and plain(job) == expected else f"named {named}, answered {gone}"
            yield f"kept {what}: {how}", 1, "named at the start, left out; the others are there", wrong
        path.write_bytes(content)
