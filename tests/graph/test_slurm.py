"""The Slurm profile against stand-ins for sbatch, sacct and srun that run jobs on the spot."""

import json
import os
import sys
import textwrap

import pytest

from tests.graph.project import SMALL, Project

SBATCH = """
    import json, os, pathlib, subprocess, sys
    spool = pathlib.Path(os.environ["SPOOL"])
    job = 100 + len(list(spool.glob("*.argv")))
    (spool / f"{job}.argv").write_text(json.dumps(sys.argv[1:]))
    [command] = [a.removeprefix("--wrap=") for a in sys.argv if a.startswith("--wrap=")]
    with open(spool / f"{job}.out", "w") as out:
        environment = os.environ | {"SLURM_JOB_ID": str(job), "SLURM_CPUS_PER_TASK": "1"}
        done = subprocess.run(["bash", "-c", command], env=environment, stdout=out, stderr=out)
    (spool / f"{job}.state").write_text("COMPLETED" if done.returncode == 0 else "FAILED")
    print(job)
"""
SACCT = """
    import os, pathlib
    for state in pathlib.Path(os.environ["SPOOL"]).glob("*.state"):
        print(f"{state.stem}|{state.read_text()}")
"""
SRUN = """
    import os, sys
    command = sys.argv[1:]
    while command[0].startswith("-"):
        command.pop(0)
    os.execvp(command[0], command)
"""
PROFILE = ("--workflow-profile", "profiles/slurm", "--configfile", SMALL)
AT_ONCE = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5")


@pytest.fixture
def cluster(fresh, tmp_path, monkeypatch):
    """The folder where submissions are recorded."""
    programs = {"sbatch": SBATCH, "sacct": SACCT, "srun": SRUN, "sinfo": "print('batch*')"}
    programs |= dict.fromkeys(("sacctmgr", "scancel", "squeue"), "")
    (tmp_path / "bin").mkdir()
    (tmp_path / "spool").mkdir()
    for name, program in programs.items():
        script = tmp_path / "bin" / name
        script.write_text(f"#!{sys.executable}\n{textwrap.dedent(program)}")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("USER", "someone")
    return tmp_path / "spool"


def submissions(spool):
    return [json.loads(path.read_text()) for path in sorted(spool.glob("*.argv"))]


def test_the_profile_plans_the_same_jobs(fresh):
    done = fresh.snakemake("train", "-n", *PROFILE)
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.count("Training ") == 6


@pytest.mark.long
def test_a_job_runs_on_the_cluster(fresh: Project, cluster):
    target = "results/small/data/Math/manifest.json"
    done = fresh.snakemake(target, *PROFILE, *AT_ONCE)
    assert done.returncode == 0, done.stdout[-3000:]
    assert (fresh.path / target).is_file()
    [submitted] = submissions(cluster)
    assert "--requeue" in submitted
    assert "--cpus-per-task=1" in submitted
    assert submitted[submitted.index("--mem") + 1] == "4000"
    assert submitted[submitted.index("-t") + 1] == "120"
    assert not any(argument.startswith("--gpus") for argument in submitted)
    (fresh.path / target).unlink()


@pytest.mark.long
def test_gpus_are_asked_of_the_cluster(fresh: Project, cluster, tmp_path):
    # The job fails there, which is as good: what matters is how it was submitted.
    overlay = tmp_path / "gpu.yaml"
    overlay.write_text("resources: {gpu: 2, threads: 4}\n")
    for name in ("models/0.1M", "data/Math"):
        folder = fresh.path / "results/small" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text("{}\n")
    target = "results/small/cells/SA-RL-0.1M-Math/seed0/manifest.json"
    done = fresh.snakemake(target, *PROFILE[:2], "--configfile", SMALL, str(overlay), *AT_ONCE)
    assert done.returncode != 0
    submitted = submissions(cluster)[-1]
    assert "--gpus=2" in submitted
    assert submitted[submitted.index("--mem") + 1] == "64000"
