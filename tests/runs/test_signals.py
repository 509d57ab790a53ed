"""A run stops when asked: after saving, with the right exit code."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from rolewise.errors import Interrupted
from rolewise.runs.signals import stop_requested


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_is_a_request_with_its_exit_code(number, code):
    before = signal.getsignal(number)
    with stop_requested() as stop:
        assert not stop()
        stop.check("nothing")
        os.kill(os.getpid(), number)
        assert stop()
        with pytest.raises(Interrupted, match="step 7 is saved; rerun the same command") as error:
            stop.check("step 7 is saved")
    assert error.value.exit_code == code
    assert signal.getsignal(number) is before


def test_a_signal_delivered_twice_at_once_is_one_request():
    with stop_requested() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()


def test_wall_limit_has_its_own_exit_code():
    limit = pytest.raises(Interrupted, match="wall limit of 0 s reached")
    with limit as error, stop_requested(max_wall=0) as stop:
        stop.check("step 7 is saved")
    assert error.value.exit_code == 75
    with stop_requested(max_wall=1e6) as stop:
        assert not stop()


def test_a_later_second_signal_ends_the_process():
    program = """
        import sys, time
        from rolewise.runs import signals
        signals._SAME_REQUEST_S = 0
        with signals.stop_requested() as stop:
            print("ready", flush=True)
            while not stop():
                time.sleep(0.01)
            print("asked", flush=True)
            time.sleep(60)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    child.terminate()
    assert child.stdout.readline() == "asked\n"
    child.terminate()
    assert child.wait() == -signal.SIGTERM
    child.stdout.close()
