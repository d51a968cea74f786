"""Overload, memory and restarts of the workbench: refusals say why and when to come back, nothing is held too long."""

from __future__ import annotations

import errno
import gc
import json
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from web import Server, busy_pids, folder, gate, puzzle_and_truth, serving, stuck, until, zipped

from jigsync.values.errors import InputError, OptionError
from jigsync.values.puzzle import Puzzle
from jigsync.web.kept import Kept
from jigsync.web.limits import Limits
from jigsync.web.room import Room


@pytest.fixture(scope="module")
def puzzle() -> Puzzle:
    return puzzle_and_truth()[0]


def uploaded(server: Server, puzzle: Puzzle) -> str:
    answer = server.upload({"x.zip": zipped(folder(puzzle))})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def refused(answer: Any, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert words in answer.json()["detail"]
    assert int(answer.headers["Retry-After"]) > 0


def answer_of(job: dict[str, Any]) -> Any:
    solution = dict(job["shown"]["solution"])
    return {key: value for key, value in solution.items() if key != "seconds"}


# ---------------------------------------------------------------------------------------------- overload


def test_too_many_jobs_are_429_and_a_finished_one_makes_room(puzzle: Puzzle) -> None:
    with serving(Limits(running_jobs=1, waiting_jobs=1)) as server:
        held = uploaded(server, puzzle)
        packed = {"x.zip": zipped(folder(puzzle))}
        with gate(server):
            for _ in range(2):
                assert server.post(f"/api/puzzles/{held}/jobs", {}).status_code == 202
            refused(server.post(f"/api/puzzles/{held}/jobs", {}), 429, "2 puzzles are being solved or wait for it")
            refused(server.upload(packed, "/solve"), 429, "try again in a moment")
            assert len(server.app.state.bench.puzzles) == 1, "what /solve did not take is not held"
        until(lambda: server.upload(packed, "/solve").status_code == 200)


def test_too_many_open_requests_are_503(puzzle: Puzzle) -> None:
    with serving(Limits(open_requests=1)) as server:
        held = uploaded(server, puzzle)
        until(lambda: server.get("/api/about").status_code == 200)  # the upload has left
        with stuck(server, held) as job, server.send("GET", f"/api/jobs/{job}/events", stream=True):
            refused(server.get("/api/about"), 503, "1 requests are open")
        until(lambda: server.get("/api/about").status_code == 200)


def test_too_many_bytes_under_way_are_503(puzzle: Puzzle) -> None:
    with serving(Limits(arriving_bytes=1000)) as server:
        refused(server.upload({"x.zip": zipped(folder(puzzle))}), 503, "Too much is being uploaded")


def test_a_full_disk_is_503_and_nothing_is_held(puzzle: Puzzle, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **keywords: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")

    with serving() as server:
        with monkeypatch.context() as patched:
            patched.setattr("jigsync.web.crew.Path.mkdir", full)
            refused(server.upload({"x.zip": zipped(folder(puzzle))}), 503, "No space left on device")
        with monkeypatch.context() as patched:  # an upload goes to the disk while the form is read
            patched.setattr("jigsync.web.forms.Container.write", full)
            refused(server.upload({"x.zip": zipped(folder(puzzle))}), 503, "No space left on device")
        assert len(server.app.state.bench.puzzles) == 0
        uploaded(server, puzzle)


def test_another_refusal_of_the_system_is_500_in_a_sentence(
    puzzle: Puzzle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **keywords: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    with serving() as server:
        monkeypatch.setattr("jigsync.web.crew.Path.mkdir", broken)
        answer = server.upload({"x.zip": zipped(folder(puzzle))})
        assert (answer.status_code, "Something went wrong" in answer.json()["detail"]) == (500, True)
    assert "Input/output error" in caplog.text


# ---------------------------------------------------------------------------------------------- memory


def test_a_finished_job_lets_go_of_the_puzzle(puzzle: Puzzle) -> None:
    with serving() as server:
        bench = server.app.state.bench
        held = uploaded(server, puzzle)
        job = server.solved(held)
        assert job["state"] == "done"
        watched = weakref.ref(bench.puzzles.get(held))
        assert server.send("DELETE", f"/api/puzzles/{held}").status_code == 204
        gc.collect()
        assert watched() is None, "the finished job must not hold its pixels"
        assert server.get(f"/api/jobs/{job['id']}").json()["shown"] == job["shown"]
        assert server.upload({"x.zip": zipped(folder(puzzle))}, "/solve").status_code == 200
        assert list(bench.jobs._jobs) == [job["id"]], "nobody can ask for the job of /solve"


def test_a_cancelled_job_lets_go_before_its_turn(puzzle: Puzzle) -> None:
    with serving(Limits(running_jobs=1)) as server:
        bench = server.app.state.bench
        first, second = uploaded(server, puzzle), uploaded(server, puzzle)
        with stuck(server, first):
            waits = server.post(f"/api/puzzles/{second}/jobs", {}).json()["id"]
            assert bench.puzzles.get(second).busy
            assert server.send("DELETE", f"/api/jobs/{waits}").json()["state"] == "cancelled"
            assert not bench.puzzles.get(second).busy
        until(lambda: not bench.puzzles.get(first).busy)
        assert server.get(f"/api/jobs/{waits}").json()["state"] == "cancelled"


# ---------------------------------------------------------------------------------------------- restarts


def test_a_restarted_server_has_its_puzzles_and_jobs(puzzle: Puzzle, tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    with serving(kept=kept) as server:
        held = uploaded(server, puzzle)
        gone = uploaded(server, puzzle)
        before, job = server.get(f"/api/puzzles/{held}").json(), server.solved(held, seed=5)
        server.send("DELETE", f"/api/puzzles/{gone}")
    kept.close()
    kept = Kept(tmp_path)
    with serving(kept=kept) as server:
        assert server.get(f"/api/puzzles/{held}").json() == before
        assert server.get(f"/api/puzzles/{gone}").status_code == 404
        assert server.get(f"/api/jobs/{job['id']}").json() == job
        again = server.app.state.bench.puzzles.get(held).puzzle
        assert all((a == b).all() for a, b in zip(again.fragments.pixels, puzzle.fragments.pixels, strict=True))
        assert answer_of(server.solved(held, seed=5)) == answer_of(job)
    kept.close()


def test_a_job_that_had_not_finished_is_solved_after_a_restart(puzzle: Puzzle, tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    with serving(Limits(running_jobs=1), kept=kept) as server:
        held = uploaded(server, puzzle)
        with gate(server) as closed:
            started = [server.post(f"/api/puzzles/{held}/jobs", {"seed": seed}).json()["id"] for seed in (1, 2)]
            until(lambda: busy_pids(server))
            server.app.state.bench.stop()
            closed.open()
    kept.close()
    assert [json.loads((tmp_path / "jobs" / f"{job}.json").read_text())["state"] for job in started] == ["waiting"] * 2
    kept = Kept(tmp_path)
    with serving(Limits(running_jobs=1), kept=kept) as server:
        ends = [list(server.events(job))[-1][1] for job in started]
        assert [job["state"] for job in ends] == ["done", "done"]
        assert answer_of(ends[0]) == answer_of(server.solved(held, seed=1))
    kept.close()


def test_damaged_kept_files_are_named_and_cost_only_themselves(
    puzzle: Puzzle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path)
    with serving(kept=kept) as server:
        whole, flipped, cut = (uploaded(server, puzzle) for _ in range(3))
        done, wrong = (server.solved(whole, seed=seed)["id"] for seed in (1, 2))
        lost = server.solved(cut)["id"]
    kept.close()
    file = tmp_path / "puzzles" / f"{flipped}.zip"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    file = tmp_path / "puzzles" / f"{cut}.zip"
    file.write_bytes(file.read_bytes()[:-300])
    file = tmp_path / "jobs" / f"{wrong}.json"
    text = file.read_text()
    assert '"turns": 1' in text
    file.write_text(text.replace('"turns": 1', '"turns": 3', 1))
    (tmp_path / "jobs" / "folder.json").mkdir()
    (tmp_path / "puzzles" / "nowhere.zip").symlink_to(tmp_path / "not-there")
    (tmp_path / "jobs" / ".jigsync-0.tmp").write_text("left by a kill")
    caplog.clear()
    with closing(Kept(tmp_path)) as kept, serving(kept=kept) as server:
        said = caplog.text
        assert server.get(f"/api/puzzles/{whole}").status_code == 200
        assert server.get(f"/api/jobs/{done}").json()["state"] == "done"
        assert server.get(f"/api/jobs/{lost}").json()["state"] == "done", "its answer is whole"
        for path in (f"puzzles/{flipped}", f"puzzles/{cut}", f"jobs/{wrong}"):
            assert server.get(f"/api/{path}").status_code == 404
            assert path in said
        assert f"{wrong}.json' is damaged: it is not what its own checksum says" in said
        assert "folder.json' is left out" in said
        assert "nowhere.zip' is left out" in said
        assert not (tmp_path / "jobs" / ".jigsync-0.tmp").exists()


def test_one_server_a_folder_and_a_file_is_none(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "here")
    with pytest.raises(OptionError, match="Another server keeps its puzzles in"):
        Kept(tmp_path / "here")
    kept.close()
    Kept(tmp_path / "here").close()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used to keep puzzles in"):
        Kept(tmp_path / "file")


def test_only_folders_of_dead_servers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead, alive = tmp_path / "jigsync-dead", Room()
    dead.mkdir()
    (dead / ".lock").touch()
    (dead / "fragment.png").touch()
    (tmp_path / "jigsync-other").mkdir()
    another = Room()
    assert {path.name for path in tmp_path.iterdir()} == {alive.path.name, another.path.name, "jigsync-other"}
    for room in (alive, another):
        room.close()
    assert [path.name for path in tmp_path.iterdir()] == ["jigsync-other"]
