"""Jobs of one node never share a GPU, whatever happens to them."""

import os
import subprocess
import sys
import textwrap

import pytest

# Each job claims its devices in files that a second claimant would find taken.
JOB = """
    import os, pathlib, sys, time
    claims = pathlib.Path(sys.argv[1])
    devices = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    pid = str(os.getpid())
    def alive(other):
        try:
            return open(f"/proc/{other}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False
    for device in devices:
        claim = claims / device
        if claim.exists() and alive(claim.read_text()):
            (claims / "overlap").write_text(device)
        claim.write_text(pid)
    time.sleep(0.05)
    print(",".join(devices), flush=True)
    sys.stdin.read(1)
    for device in devices:
        (claims / device).unlink(missing_ok=True)
"""


def lease(tmp_path, count, devices="0,1", program=JOB, **extra):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    environment |= {"ROLEWISE_LEASE_DIR": str(tmp_path / "leases")} | extra
    if devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = devices
    (tmp_path / "claims").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "rolewise.runs.gpu_lease", str(count), "--"]
    command += [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "claims")]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_six_jobs_on_two_devices_never_overlap_even_when_killed(tmp_path):
    jobs = [lease(tmp_path, 1) for _ in range(6)]
    jobs[0].kill()  # while starting, waiting or holding
    served = []
    for job in [jobs[1], *jobs[3:]]:
        job.stdin.write("x")
        job.stdin.flush()
    jobs[2].stdout.readline()
    jobs[2].kill()  # while holding
    for job in jobs:
        output, errors = job.communicate()
        served.append(output.strip())
        assert job.returncode in (0, -9), errors
    assert set(filter(None, served)) <= {"0", "1"}
    assert [job.returncode for job in jobs].count(0) == 4
    assert not (tmp_path / "claims" / "overlap").exists()


def test_a_waiting_job_runs_once_the_holder_is_killed(tmp_path):
    first, second = lease(tmp_path, 2), None
    assert first.stdout.readline() == "0,1\n"
    second = lease(tmp_path, 1)
    first.kill()
    first.communicate()
    assert second.stdout.readline() in ("0\n", "1\n")
    second.communicate("x")
    assert second.returncode == 0


def test_a_job_gets_all_its_devices_or_waits(tmp_path):
    first = lease(tmp_path, 1)
    device = first.stdout.readline().strip()
    both = lease(tmp_path, 2)
    first.communicate("x")
    assert both.stdout.readline() == "0,1\n"
    both.communicate("x")
    assert device in ("0", "1")
    assert not (tmp_path / "claims" / "overlap").exists()


@pytest.mark.parametrize(("count", "devices"), [(3, "0,1"), (1, "")])
def test_more_than_the_machine_has_is_refused(tmp_path, count, devices):
    job = lease(tmp_path, count, devices)
    _, errors = job.communicate()
    assert job.returncode == 2
    assert f"asks for {count} GPU(s)" in errors
    assert "resources.gpu" in errors


@pytest.mark.parametrize("extra", [{}, {"SLURM_JOB_ID": "7"}])
def test_without_need_of_a_lease_the_environment_is_left_alone(tmp_path, extra):
    program = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
    job = lease(tmp_path, 1 if extra else 0, "4,5", program, **extra)
    output, _ = job.communicate()
    assert output == "4,5\n"
    assert not (tmp_path / "leases").exists()


@pytest.mark.parametrize("arguments", [[], ["1"], ["x", "--", "true"], ["1", "true", "x"]])
def test_wrong_use_is_explained(arguments):
    command = [sys.executable, "-m", "rolewise.runs.gpu_lease", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_the_exit_code_is_the_commands_own():
    command = [sys.executable, "-m", "rolewise.runs.gpu_lease", "0", "--", "sh", "-c", "exit 75"]
    assert subprocess.run(command, check=False).returncode == 75
