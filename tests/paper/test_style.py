import itertools

import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from rolewise.paper import style
from rolewise.paper.curves import smooth


def lightness(colour):
    """Relative luminance, 0 to 1: what a grey print keeps of a colour."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_policies_differ_in_colour_line_and_marker():
    for part in (style.POLICY_COLOUR, style.POLICY_LINE, style.POLICY_MARKER):
        assert len(set(part.values())) == len(part)


def test_tasks_are_told_apart_in_a_grey_print():
    shades = sorted(map(lightness, style.TASK_COLOUR.values()))
    assert all(b - a > 0.05 for a, b in itertools.pairwise(shades))


def test_workflows_and_tasks_of_ones_own_get_looks_of_their_own():
    workflows = ["Eval-Opt", "Debate", "Chain", "Voting"]
    assert len({style.marker_of(name, workflows) for name in workflows}) == 4
    assert (
        len(
            {
                style.task_colour(name, ["Math", "Logic", "Facts"])
                for name in ("Math", "Logic", "Facts")
            }
        )
        == 3
    )


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1.0, 1.2], "linear"),
        ([0.01, 5.0], "log"),
        ([-0.001, 0.02, 5.0], "symlog"),
        ([-1.0, 0.0], "linear"),
    ],
)
def test_amplitudes_choose_a_scale_that_shows_them(values, scale):
    axes = Figure().subplots()
    style.amplitude_scale(axes.yaxis, pd.Series(values))
    assert axes.get_yscale() == scale


def test_short_curves_are_not_smoothed():
    short, long = pd.Series([0.0, 1.0, 0.0]), pd.Series([0.0, 1.0] * 10)
    assert smooth(short).equals(short)
    assert smooth(long).std() < long.std() / 2
