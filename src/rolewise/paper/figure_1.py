"""Figure 1: topology of every workflow and how the policies route its updates.

Drawn from recordings of the coroutines themselves, so that picture and code cannot disagree.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from rolewise.grid import SHARED, SINGLE, SINGLE_AGENT
from rolewise.paper import style
from rolewise.paper.study import Study
from rolewise.paper.topology import Recording, record
from rolewise.policy.routing import adapter_of
from rolewise.workflows.base import topology

TITLE = "Workflow topologies and policy routing"

HALF_WIDTH, HALF_HEIGHT = 0.52, 0.15
COLUMN, ROW = 1.38, 0.52
# Inches of a unit of the drawing, at most; a node's label fills its box at this scale.
UNIT = 0.52


def data(study: Study) -> pd.DataFrame:
    """A row per call slot, text edge and graded output of every workflow and policy.

    `kind` is call (source = role:slot, with its round, turns and the adapter that its tokens
    update), problem (it stands in the target's prompt), text (the target's prompt contains the
    source's output) or graded.
    """
    config = study.config
    pairs = [(workflow, p) for workflow in config.grid.workflows for p in config.grid.policies]
    if config.grid.single_agent:
        pairs = [(SINGLE, SINGLE_AGENT), *pairs]
    task = config.grid.tasks[0]
    frames = [
        _rows(record(topology(config, workflow), config, task), workflow, policy)
        for workflow, policy in pairs
    ]
    return pd.concat(frames, ignore_index=True)


def _rows(recording: Recording, workflow: str, policy: str) -> pd.DataFrame:
    name = {r.call.key: f"{r.call.role}:{r.call.slot}" for r in recording.calls}
    rows: dict[tuple[str, str, str], dict] = {}

    def add(kind: str, source: str, target: str = "", **more: object) -> None:
        rows.setdefault(
            (kind, source, target), {"kind": kind, "source": source, "target": target} | more
        )

    for item in recording.calls:
        call = item.call
        add(
            "call",
            name[call.key],
            round=item.round,
            turns=recording.turns(call.role),
            adapter=adapter_of(policy, call.role),
        )
    for item in recording.calls:
        if item.problem:
            add("problem", "", name[item.call.key])
        for key in item.reads:
            if name[key] != name[item.call.key]:
                add("text", name[key], name[item.call.key])
    add("graded", _answers(recording, name))
    frame = pd.DataFrame(list(rows.values())).assign(workflow=workflow, policy=policy)
    columns = ["workflow", "policy", "kind", "source", "target", "round", "turns", "adapter"]
    return frame[columns].astype({"round": "Int64", "turns": "Int64"})


def _answers(recording: Recording, name: dict[tuple[str, int, int], str]) -> str:
    """Who gives the answer: the graded call, or the last one where it picks among parallel slots."""
    role, slot, turn = recording.graded
    siblings = [r for r in recording.calls if (r.call.role, r.call.turn) == (role, turn)]
    last = recording.calls[-1].call
    return name[last.key] if len(siblings) > 1 else name[(role, slot, turn)]


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """A column per workflow, a row per policy; the single agent beside the first row."""
    single = frame[frame.policy == SINGLE_AGENT]
    many = frame[frame.policy != SINGLE_AGENT]
    workflows = list(dict.fromkeys(frame.workflow))
    policies = list(dict.fromkeys(many.policy))
    widths = [COLUMN * len(_layer(frame, name)) + 0.7 for name in workflows]
    slots = frame[frame.kind == "call"].groupby(["workflow", "policy", "round"]).size()
    reach = ROW * (max(3, slots.max()) - 1) / 2
    unit = min(UNIT, style.PAGE / sum(widths))
    figure = style.page(0.3 + len(policies) * UNIT * (2 * reach + 1.5), unit * sum(widths))
    grid = figure.add_gridspec(len(policies), len(workflows), width_ratios=widths)
    for (workflow, policy), part in frame.groupby(["workflow", "policy"], sort=False):
        row = policies.index(policy) if policy in policies else 0
        title = "SA-RL" if policy == SINGLE_AGENT else f"{workflow}, {policy}"
        axes = figure.add_subplot(grid[row, workflows.index(workflow)])
        axes.set_title(title, pad=2)
        _panel(axes, part, reach, fontsize=5.3 * unit / UNIT)
    if not single.empty and len(policies) > 1:
        _legend(figure.add_subplot(grid[1, 0]))
    style.footnote(figure, f"Recorded from the workflows. Preset {study.config.preset}.")
    return figure


def _legend(axes: Axes) -> None:
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    entries = (
        "problem; on a box:\nin its prompt, too",
        "graded answer",
        "text goes into\nthe prompt of",
        "adapter that its\ntokens update",
    )
    for y, entry in zip((0.85, 0.66, 0.43, 0.16), entries, strict=True):
        axes.text(0.32, y, entry, fontsize=5.5, va="center", linespacing=1.05)
    _problem(axes, 0.15, 0.85)
    axes.plot(0.15, 0.66, "o", color=style.BLACK, markersize=4)
    _arrow(axes, (0.03, 0.43), (0.26, 0.43))
    axes.add_patch(
        FancyBboxPatch(
            (0.05, 0.11),
            0.19,
            0.1,
            boxstyle="square,pad=0",
            facecolor=style.LIGHT,
            edgecolor="none",
        )
    )


def _layer(frame: pd.DataFrame, workflow: str) -> dict[int, int]:
    """Rounds in which a role first speaks -> columns of the picture, without gaps."""
    rounds = sorted(frame[(frame.workflow == workflow) & (frame.kind == "call")]["round"].unique())
    return {r: k for k, r in enumerate(rounds)}


def _panel(axes: Axes, part: pd.DataFrame, reach: float, fontsize: float) -> None:
    calls = part[part.kind == "call"]
    layer = _layer(part, part.workflow.iloc[0])
    columns = calls.groupby(calls["round"].map(layer))
    place = {
        source: (COLUMN * float(k), ROW * ((len(group) - 1) / 2 - i))
        for k, group in columns
        for i, source in enumerate(group.source)
    }
    roles = list(dict.fromkeys(calls.source.str.partition(":")[0]))
    adapters = list(dict.fromkeys(calls.adapter))
    shared = len(adapters) == 1 and len(roles) > 1
    colour = {
        name: style.POLICY_COLOUR[SHARED] if shared else style.ROLE_COLOURS[i]
        for i, name in enumerate(adapters)
    }
    last = max(x for x, _ in place.values())
    axes.axis("off")
    axes.set(xlim=(-0.95, last + 0.95), ylim=(-reach - 0.75, reach + 0.5))
    for call in calls.itertuples():
        role = call.source.partition(":")[0]
        _node(axes, place[call.source], role, colour[call.adapter], fontsize)
        if place[call.source][0] == 0:
            _arrow(axes, (-0.8, 0), _edge(place[call.source], -1))
    _problem(axes, -0.82, 0)
    for x, y in (place[target] for target in part[part.kind == "problem"].target):
        if x > 0:
            _problem(axes, x - HALF_WIDTH + 0.08, y - HALF_HEIGHT, size=2.8)
    for role in roles:
        turns = calls[calls.source.str.partition(":")[0] == role].turns.iloc[0]
        x, y = min(
            (place[source] for source in place if source.startswith(f"{role}:")), key=lambda p: p[1]
        )
        if turns > 1:
            below = y - HALF_HEIGHT - 0.2
            axes.text(x, below, f"≤ {turns} turns", ha="center", va="top", fontsize=5, color="0.35")
    texts = part[part.kind == "text"]
    both = set(zip(texts.source, texts.target, strict=True))
    for source, target in sorted(both):
        _text_edge(axes, place[source], place[target], reach, (target, source) in both)
    answer = part[part.kind == "graded"].source.iloc[0]
    _answer_edge(axes, place[answer], last, reach)
    _adapters(axes, adapters, colour, last, reach)


def _edge(centre: tuple[float, float], side: int) -> tuple[float, float]:
    return (centre[0] + side * (HALF_WIDTH + 0.02), centre[1])


def _node(axes: Axes, centre: tuple, role: str, colour: str, fontsize: float) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (centre[0] - HALF_WIDTH + 0.05, centre[1] - HALF_HEIGHT + 0.05),
            2 * HALF_WIDTH - 0.1,
            2 * HALF_HEIGHT - 0.1,
            boxstyle="round,pad=0.05",
            facecolor=to_rgba(colour, 0.35),
            edgecolor=colour,
            linewidth=0.9,
        )
    )
    axes.text(*centre, role, ha="center", va="center", fontsize=fontsize)


def _problem(axes: Axes, x: float, y: float, size: float = 4) -> None:
    axes.plot(x, y, "o", color=style.BLACK, markerfacecolor="white", markersize=size, zorder=3)


def _arrow(axes: Axes, start: tuple, end: tuple, bend: float = 0.0) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=5,
            linewidth=0.7,
            color=style.BLACK,
            shrinkA=0,
            shrinkB=0,
            connectionstyle=f"arc3,rad={bend}",
        )
    )


def _text_edge(axes: Axes, source: tuple, target: tuple, reach: float, mutual: bool) -> None:
    """Straight between neighbours, a pair of arcs where both read each other, else over the top."""
    forward = target[0] > source[0]
    side = 1 if forward else -1
    if source[0] == target[0]:
        up = 1 if target[1] > source[1] else -1
        x = source[0] + 0.1 * up
        _arrow(axes, (x, source[1] + up * HALF_HEIGHT), (x, target[1] - up * HALF_HEIGHT))
    elif mutual:
        start = (source[0] + side * 0.4 * HALF_WIDTH, source[1] + side * HALF_HEIGHT)
        end = (target[0] - side * 0.4 * HALF_WIDTH, target[1] + side * HALF_HEIGHT)
        _arrow(axes, start, end, bend=-0.4)
    elif forward and target[0] - source[0] < 1.5 * COLUMN:
        _arrow(axes, _edge(source, 1), _edge(target, -1))
    else:
        _over_the_top(axes, source, (target[0], target[1] + HALF_HEIGHT), reach)


def _over_the_top(axes: Axes, source: tuple, end: tuple, reach: float) -> None:
    """An edge up from `source`, along above all nodes, and down to `end`."""
    above = reach + 0.33
    corners = [(source[0], source[1] + HALF_HEIGHT), (source[0], above), (end[0], above)]
    axes.plot(*zip(*corners, strict=True), color=style.BLACK, linewidth=0.7)
    _arrow(axes, corners[-1], end)


def _answer_edge(axes: Axes, centre: tuple, last: float, reach: float) -> None:
    end = (last + 0.8, centre[1])
    if centre[0] == last:
        _arrow(axes, _edge(centre, 1), (end[0] - 0.05, end[1]))
    else:
        _over_the_top(axes, centre, (end[0], end[1] + 0.07), reach)
    axes.plot(*end, "o", color=style.BLACK, markersize=4)


def _adapters(
    axes: Axes, names: list[str], colour: dict[str, str], last: float, reach: float
) -> None:
    """The adapters below the graph, each in the colour of the roles that update it."""
    left, width = -0.6, (last + 1.2) / len(names)
    for i, name in enumerate(names):
        centre = left + (i + 0.5) * width
        axes.text(
            centre,
            -reach - 0.55,
            f"LoRA\n{name}",
            ha="center",
            va="center",
            fontsize=5.5,
            linespacing=1.0,
            bbox={
                "boxstyle": "square,pad=0.3",
                "facecolor": colour[name],
                "edgecolor": "none",
                "alpha": 0.35,
            },
        )


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows."""
    return (
        "Recorded by running each workflow: open circle = problem (small, on a box: it stands in that prompt, too), filled circle = graded answer, "
        "solid arrows = whose text stands in whose prompt. A box's colour is the adapter (below) that its tokens "
        f"update. Widest and longest episode of a {study.config.grid.tasks[0]} problem. "
        f"Preset {study.config.preset}."
    )
