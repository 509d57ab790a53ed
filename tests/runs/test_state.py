"""Resumable state survives kills, damage and full disks."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from rolewise.errors import StateError
from rolewise.runs.state import StateDir


def write_weights(text: str):
    def write(folder: Path) -> None:
        (folder / "adapters").mkdir()
        (folder / "adapters" / "generator.bin").write_bytes(text.encode())
        (folder / "optimizer.bin").write_bytes(text.encode() * 100)

    return write


def test_newest_checkpoint_is_found(tmp_path):
    state = StateDir(tmp_path / "state")
    for step in (0, 10, 20):
        state.save(step, write_weights(f"weights {step}"))
    step, folder = state.latest()
    assert (step, state.steps()) == (20, [0, 10, 20])
    assert (folder / "adapters" / "generator.bin").read_text() == "weights 20"
    assert (state.path / "LATEST").read_text() == "step_000020\n"


def test_latest_respects_the_largest_step_asked_for(tmp_path):
    state = StateDir(tmp_path)
    for step in (10, 20):
        state.save(step, write_weights(str(step)))
    assert state.latest(max_step=19)[0] == 10
    assert state.latest(max_step=9) is None


@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "no list", "list broken"])
def test_damaged_checkpoint_is_passed_over(tmp_path, caplog, damage):
    state = StateDir(tmp_path)
    for step in (10, 20):
        state.save(step, write_weights(str(step)))
    file = state.checkpoint(20) / "optimizer.bin"
    if damage == "truncated":
        os.truncate(file, 5)
    elif damage == "changed":
        file.write_bytes(b"x" + file.read_bytes()[1:])
    elif damage == "missing":
        file.unlink()
    elif damage == "no list":
        (state.checkpoint(20) / "files.json").unlink()
    else:
        (state.checkpoint(20) / "files.json").write_text("[1")
    assert state.latest()[0] == 10
    assert "falling back" in caplog.text
    state.save(20, write_weights("again"))
    assert state.latest()[0] == 20


def test_a_failing_write_leaves_the_state_as_it_was(tmp_path):
    state = StateDir(tmp_path)
    state.save(10, write_weights("10"))

    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise ValueError("not finite")

    with pytest.raises(ValueError, match="not finite"):
        state.save(20, fail)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["LATEST", "step_000010"]


def test_only_the_steps_kept_survive_pruning(tmp_path):
    state = StateDir(tmp_path)
    for step in (0, 10, 20, 30):
        state.save(step, write_weights(str(step)))
    state.prune({10, 30})
    assert state.steps() == [10, 30]
    assert not list(tmp_path.glob(".*"))


def test_identity_names_every_key_that_differs(tmp_path):
    state = StateDir(tmp_path)
    state.check_identity({"config": {"lr": 0.1, "rank": 4}, "inputs": {"data": "aa"}})
    state.check_identity({"inputs": {"data": "aa"}, "config": {"rank": 4, "lr": 0.1}})
    with pytest.raises(StateError) as error:
        state.check_identity({"config": {"lr": 0.2, "rank": 4}, "inputs": {"data": "bb"}})
    assert "config.lr: 0.1 then, 0.2 now" in str(error.value)
    assert "inputs.data" in str(error.value)
    assert "rank" not in str(error.value)


def test_lock_names_its_holder_and_is_freed(tmp_path):
    state = StateDir(tmp_path)
    holder = f"process {os.getpid()} on .* since"
    with state.lock(), pytest.raises(StateError, match=holder), state.lock():
        raise AssertionError("two holders")
    with state.lock():
        pass


def test_lock_of_a_killed_process_is_free(tmp_path):
    # The child's own forked helper lives on; it must not keep the lock.
    program = """
        import os, sys, time
        from rolewise.runs.state import StateDir
        with StateDir(sys.argv[1]).lock():
            if os.fork() == 0:
                print("held", flush=True)
                time.sleep(30)
                os._exit(0)
            time.sleep(30)
    """
    child = start(program, tmp_path, start_new_session=True)
    assert child.stdout.readline() == "held\n"
    with pytest.raises(StateError, match=f"process {child.pid} "), StateDir(tmp_path).lock():
        pass
    child.kill()
    child.wait()
    with StateDir(tmp_path).lock():
        pass
    os.killpg(child.pid, signal.SIGKILL)
    child.stdout.close()


def test_log_rows_survive_and_later_steps_are_dropped_on_resume(tmp_path):
    state = StateDir(tmp_path)
    for step in range(1, 6):
        state.append("metrics", [{"step": step, "role": r} for r in ("a", "b")])
    assert len(state.rows("metrics")) == 10
    kept = state.truncate("metrics", 3)
    assert [row["step"] for row in kept] == [1, 1, 2, 2, 3, 3]
    assert state.rows("metrics") == kept
    state.append("metrics", [{"step": 4, "role": "a"}])
    assert state.last_step("metrics") == 4


def test_log_cut_at_any_byte_keeps_whole_steps(tmp_path):
    state = StateDir(tmp_path)
    for step in range(1, 5):
        state.append("metrics", [{"step": step, "role": r, "x": 1 / 3} for r in ("a", "b")])
    file = tmp_path / "metrics.jsonl"
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        last = state.last_step("metrics")
        assert len(state.rows("metrics")) == 2 * last
        assert last == whole[:size].count(b"\n")
    file.write_bytes(whole[:-3])
    state.truncate("metrics", 99)
    state.append("metrics", [{"step": 4, "role": "a"}])
    assert state.last_step("metrics") == 4


def test_a_damaged_line_ends_the_log(tmp_path):
    state = StateDir(tmp_path)
    for step in range(1, 5):
        state.append("metrics", [{"step": step}])
    lines = (tmp_path / "metrics.jsonl").read_text().split("\n")
    lines[1] = lines[1][:-2] + "~~"
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert state.last_step("metrics") == 1


def test_numbers_are_read_back_exactly(tmp_path):
    values = {"step": 1, "a": 0.1 + 0.2, "b": 1e-300, "c": None, "d": float("inf")}
    state = StateDir(tmp_path)
    state.append("metrics", [values])
    assert state.rows("metrics") == [values]


def test_a_full_disk_is_explained_and_harmless(tmp_path):
    state = StateDir(tmp_path)
    state.save(10, write_weights("10"))
    state.append("metrics", [{"step": 10}])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))
    try:
        with pytest.raises(StateError, match=r"free disk space.*rerun the same command"):
            state.save(20, write_weights("long weights " * 100))
        with pytest.raises(StateError, match="free disk space"):
            state.append("metrics", [{"step": 20, "text": "x" * 1000}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert state.latest()[0] == 10
    assert state.rows("metrics") == [{"step": 10}]
    assert not list(tmp_path.glob(".*"))
    state.append("metrics", [{"step": 20}])
    assert state.last_step("metrics") == 20


def test_an_unwritable_place_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="could not save step 1"):
        StateDir(tmp_path / "file" / "state").save(1, write_weights("1"))


TRAINER = """
    import sys
    from pathlib import Path
    from rolewise.runs.state import StateDir

    state = StateDir(sys.argv[1])
    with state.lock():
        state.check_identity({"lr": 1})
        found = state.latest(max_step=state.last_step("metrics"))
        step, value = 0, 1
        if found:
            step = found[0]
            value = int((found[1] / "value").read_text())
        state.truncate("metrics", step)
        print("from", step, flush=True)
        while step < 100:
            step += 1
            value = (value * 48271) % 2147483647
            state.append("metrics", [{"step": step, "role": r, "value": value} for r in "ab"])
            if step % 5 == 0:
                def write(folder):
                    (folder / "value").write_text(str(value))
                    for i in range(5):
                        (folder / f"padding{i}").write_bytes(bytes(100_000))
                state.save(step, write)
    print("done", flush=True)
"""


def start(program: str, path: Path, **options) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def kill_until_done(path: Path, kills: int, rng: random.Random) -> int:
    """Run the trainer, killing it `kills` times at random moments; returns the attempts needed."""
    for attempt in range(1, 200):
        child = start(TRAINER, path)
        assert child.stdout.readline().startswith("from")
        if attempt <= kills:
            time.sleep(rng.uniform(0, 0.04))
            child.kill()
        output = child.stdout.read()
        child.stdout.close()
        child.wait()
        if "done" in output:
            return attempt
    raise AssertionError("never finished")


def final(path: Path) -> tuple:
    state = StateDir(path)
    files = {p.name: p.read_bytes() for p in state.checkpoint(100).iterdir()}
    return files, state.rows("metrics"), state.latest()[0]


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.long)])
def test_killed_at_random_moments_ends_as_if_never_killed(tmp_path, kills):
    kill_until_done(tmp_path / "whole", 0, random.Random(0))
    attempts = kill_until_done(tmp_path / "killed", kills, random.Random(1))
    assert attempts > 1
    assert final(tmp_path / "killed") == final(tmp_path / "whole")
    assert json.loads((tmp_path / "killed" / "identity.json").read_text()) == {"lr": 1}
    with StateDir(tmp_path / "killed").lock():
        assert not list((tmp_path / "killed").glob(".*"))
