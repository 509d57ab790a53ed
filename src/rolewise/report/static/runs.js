"use strict";
// Runs as the browser sees them: which checkpoint is meant, which episodes match, what they say.
(function (rolewise) {
  const FIELDS = [
    "role", "slot", "turn", "prompt", "text", "tokens", "promptTokens", "finish",
    "entropy", "parsed", "fallback", "answer", "correct", "graded", "captured",
  ];

  /** The run's index with look-ups added: problem id -> number, problem -> its episodes. */
  rolewise.openRun = async function (entry) {
    const index = await rolewise.load(entry.shard);
    if (!index.byId) {
      index.byId = new Map(index.problems.map((problem, number) => [problem[0], number]));
      index.episodesOf = index.problems.map(() => []);
      index.episodes.problem.forEach((problem, episode) => index.episodesOf[problem].push(episode));
    }
    return index;
  };

  /** The number of the checkpoint called `name`; `any` is the best one, else the last. */
  rolewise.checkpointNumber = function (index, name) {
    const find = (wanted) => index.checkpoints.findIndex((c) => c.names.includes(wanted));
    if (name !== "any") return find(name);
    const best = find("best");
    return best >= 0 ? best : index.checkpoints.length - 1;
  };

  rolewise.checkpointLabel = function (checkpoint) {
    return checkpoint.names.join(", ");
  };

  function episodeMatches(index, episode, state) {
    const data = index.episodes;
    const mask = state.role === "any" ? ~0 : 1 << index.roles.indexOf(state.role);
    if (state.wrong) {
      const wrong = state.role === "any" ? !data.correct[episode] : data.wrong[episode] & mask;
      if (!wrong) return false;
    }
    if (state.fallback && !(data.fallback[episode] & mask)) return false;
    if (state.captured && !(data.captured[episode] & mask)) return false;
    return true;
  }

  /** Whether a problem of a run passes the filters; all of them must hold in one episode. */
  rolewise.problemMatches = function (index, problem, state) {
    if (state.role !== "any" && !index.roles.includes(state.role)) return false;
    const query = state.q.trim().toLowerCase();
    const [id, excerpt] = index.problems[problem];
    if (query && !id.toLowerCase().includes(query) && !excerpt.toLowerCase().includes(query)) {
      return false;
    }
    const sample = Number(state.sample) || 0;
    const all = index.episodesOf[problem].filter((e) => index.episodes.sample[e] === sample);
    if (state.differs && new Set(all.map((e) => index.episodes.correct[e])).size < 2) return false;
    return all.some(function (episode) {
      const names = index.checkpoints[index.episodes.checkpoint[episode]].names;
      if (state.checkpoint !== "any" && !names.includes(state.checkpoint)) return false;
      return episodeMatches(index, episode, state);
    });
  };

  /** An episode with its calls, or null when the run has none for this problem and checkpoint. */
  rolewise.openEpisode = async function (entry, problemId, checkpoint, sample) {
    const index = await rolewise.openRun(entry);
    const problem = index.byId.get(problemId);
    if (problem === undefined || checkpoint < 0) return null;
    const data = index.episodes;
    const episode = index.episodesOf[problem].find(
      (e) => data.checkpoint[e] === checkpoint && data.sample[e] === sample,
    );
    if (episode === undefined) return null;
    const chunk = await rolewise.load(entry.shard + ".t" + index.problems[problem][2]);
    const calls = chunk.calls[episode].map(function (row) {
      const call = Object.fromEntries(FIELDS.map((field, i) => [field, row[i]]));
      call.text = chunk.strings[call.text];
      call.prompt = chunk.strings[call.prompt];
      return call;
    });
    for (const call of calls) {
      const same = calls.filter((other) => other.role === call.role);
      call.slots = new Set(same.map((other) => other.slot)).size;
      call.turns = new Set(same.map((other) => other.turn)).size;
    }
    return { correct: Boolean(data.correct[episode]), reward: data.reward[episode], calls };
  };

  /** Statement and reference of a problem, null where the study's data are not at hand. */
  rolewise.openProblem = async function (entry, problemId) {
    const index = await rolewise.openRun(entry);
    const problem = index.byId.get(problemId);
    if (problem === undefined) return null;
    const chunk = await rolewise.load(entry.shard + ".t" + index.problems[problem][2]);
    return chunk.problems[problem] || null;
  };
})(window.rolewise);
