"use strict";
// Which episodes of one problem stand side by side.
(function (rolewise) {
  /** The columns of the current view: {title, subtitle, episode, reason if there is none}. */
  rolewise.buildColumns = async function (catalogue, entry, state) {
    const own = await rolewise.openRun(entry);
    const chosen = rolewise.checkpointNumber(own, state.checkpoint);
    const name = chosen >= 0 ? own.checkpoints[chosen].names[0] : state.checkpoint;
    const column = (other, checkpoint) => open(catalogue, other, checkpoint, state);
    if (state.view === "one") return Promise.all([column(entry.key, name)]);
    if (state.view === "policies") {
      const pair = entry.policy === "SP" ? [entry.key, entry.twin] : [entry.twin, entry.key];
      return Promise.all(pair.map((key) => column(key, name)));
    }
    if (state.view === "base") {
      return Promise.all([column(entry.base, "base"), column(entry.key, name)]);
    }
    if (state.view === "single") {
      return Promise.all([column(entry.single, name), column(entry.key, name)]);
    }
    const columns = own.checkpoints.map((checkpoint) => column(entry.key, checkpoint.names[0]));
    const untrained = own.checkpoints.some((checkpoint) => checkpoint.names.includes("base"));
    if (!untrained) columns.unshift(column(entry.base, "base"));
    return Promise.all(columns);
  };

  async function open(catalogue, key, checkpoint, state) {
    const entry = catalogue.runs.get(key);
    if (!entry) {
      return { title: "no counterpart", subtitle: "", reason: "This study has no such cell." };
    }
    if (!entry.shard) {
      const reason = "No trajectories of this cell in this results folder.";
      return { title: entry.cell, subtitle: checkpoint, reason };
    }
    const index = await rolewise.openRun(entry);
    const number = rolewise.checkpointNumber(index, checkpoint);
    if (number < 0) {
      const reason = "This checkpoint was not sampled.";
      return { title: entry.cell, subtitle: checkpoint, reason };
    }
    const found = index.checkpoints[number];
    const moment = rolewise.checkpointLabel(found) + " · step " + found.step;
    const overTime = state.view === "checkpoints" || state.view === "one";
    const episode = await rolewise.openEpisode(entry, state.problem, number, Number(state.sample) || 0);
    return {
      title: overTime ? moment : entry.cell,
      subtitle: overTime ? entry.cell : moment,
      episode,
      reason: "This problem was not sampled here.",
    };
  }
})(window.rolewise);
