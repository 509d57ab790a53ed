"use strict";
// The trajectory browser: filters and list on the left, one problem's episodes on the right.
(function (rolewise) {
  const element = rolewise.element;
  const byId = (id) => document.getElementById(id);
  const SELECTS = ["scope", "view", "checkpoint", "role", "sample"];
  const VIEWS = ["checkpoints", "policies", "base", "single", "one"];
  const ALL = "all";

  const catalogue = { runs: new Map(rolewise.payload("catalogue").runs.map((run) => [run.key, run])) };
  const browsable = [...catalogue.runs.values()].filter((run) => run.shard);
  let state = rolewise.readState(location.hash);
  let rows = [];
  let scopeShown = null;
  let drawing = 0;

  const list = new rolewise.VirtualList(byId("list"), 62, fillRow, (index) => choose(index, true));

  function fillRow(node, number) {
    const { entry, index, problem } = rows[number];
    const [id, excerpt] = index.problems[problem];
    const data = index.episodes;
    const sample = Number(state.sample) || 0;
    const marks = index.episodesOf[problem]
      .filter((episode) => data.sample[episode] === sample)
      .map(function (episode) {
        const right = data.correct[episode];
        const label = rolewise.checkpointLabel(index.checkpoints[data.checkpoint[episode]]);
        return element("span", { class: "chip " + (right ? "right" : "wrong") }, label + (right ? " ✓" : " ✗"));
      });
    const detail = state.scope === ALL ? entry.key : excerpt;
    node.append(
      element("div", { class: "row-title" }, element("b", {}, id), " ", detail),
      element("div", { class: "chips" }, ...marks),
    );
  }

  async function entriesInScope() {
    const wanted = state.scope === ALL ? browsable : [catalogue.runs.get(state.scope)];
    let done = 0;
    return Promise.all(
      wanted.map(async function (entry) {
        const index = await rolewise.openRun(entry);
        done += 1;
        if (done < wanted.length) byId("count").textContent = `loading ${done} of ${wanted.length} cells`;
        return { entry, index };
      }),
    );
  }

  /** Options that the runs in scope offer; the current choice is kept when it still exists. */
  function offer(select, values, labels) {
    const wanted = values.includes(state[select]) ? state[select] : values[0];
    byId(select).replaceChildren(
      ...values.map((value, i) => element("option", { value, selected: value === wanted }, labels[i])),
    );
    state[select] = wanted;
  }

  function refreshOptions(opened) {
    const roles = [...new Set(opened.flatMap(({ index }) => index.roles))];
    const names = [...new Set(opened.flatMap(({ index }) => index.checkpoints.flatMap((c) => c.names)))];
    const samples = [...new Set(opened.flatMap(({ index }) => index.episodes.sample))].sort((a, b) => a - b);
    offer("role", ["any", ...roles], ["any role", ...roles]);
    offer("checkpoint", ["any", ...names], ["any checkpoint", ...names]);
    offer("sample", samples.map(String), samples.map((s) => "sample " + (s + 1)));
    byId("sample").closest("label").hidden = samples.length < 2;
  }

  async function refreshList() {
    const turn = ++drawing;
    let opened;
    try {
      opened = await entriesInScope();
    } catch (error) {
      return report(error);
    }
    if (turn !== drawing) return;
    if (scopeShown !== state.scope) {
      refreshOptions(opened);
      scopeShown = state.scope;
    }
    showControls();
    rows = [];
    let total = 0;
    for (const { entry, index } of opened) {
      total += index.problems.length;
      for (let problem = 0; problem < index.problems.length; problem++) {
        if (rolewise.problemMatches(index, problem, state)) rows.push({ entry, index, problem });
      }
    }
    byId("count").textContent = `${rows.length} of ${total} problems`;
    list.reset(rows.length, selectedRow());
    await refreshDetail();
  }

  function selectedRow() {
    return rows.findIndex(
      ({ entry, index, problem }) =>
        index.problems[problem][0] === state.problem && (state.scope !== ALL || entry.key === state.run),
    );
  }

  function currentEntry() {
    return catalogue.runs.get(state.scope === ALL ? state.run : state.scope);
  }

  async function refreshDetail() {
    const turn = drawing;
    const shown = state.problem;
    document.body.classList.toggle("reading", Boolean(shown));
    const entry = currentEntry();
    const detail = byId("detail");
    if (!shown || !entry || !entry.shard) {
      detail.replaceChildren(
        element("p", { class: "quiet" }, "Choose a problem, or press j. Press ? for all keys."),
      );
      return;
    }
    try {
      const [problem, columns] = await Promise.all([
        rolewise.openProblem(entry, shown),
        rolewise.buildColumns(catalogue, entry, state),
      ]);
      if (turn !== drawing || shown !== state.problem) return;
      detail.replaceChildren(heading(entry, problem), gallery(columns));
      detail.scrollTop = 0;
    } catch (error) {
      report(error);
    }
  }

  function heading(entry, problem) {
    const statement = problem
      ? [
          element("pre", { class: "output statement", tabindex: "0", role: "region", "aria-label": "problem statement" }, problem.prompt),
          element(
            "details",
            {},
            element("summary", {}, "reference"),
            element("pre", { class: "output", tabindex: "0", role: "region", "aria-label": "reference" }, problem.reference),
          ),
        ]
      : [element("p", { class: "note" }, "The problem's statement is not in this results folder; the prompts below quote it.")];
    return element(
      "header",
      { class: "problem" },
      element("button", { type: "button", class: "back", onclick: () => update({ problem: "" }, true) }, "← all problems"),
      element("h2", { id: "problem-title", tabindex: "-1" }, state.problem),
      element("p", { class: "quiet" }, entry.key),
      ...statement,
    );
  }

  function gallery(columns) {
    return element(
      "div",
      { class: "columns", tabindex: "0", role: "group", "aria-label": "episodes side by side" },
      ...columns.map((column) => rolewise.drawColumn(column, state.role)),
    );
  }

  function report(error) {
    byId("detail").replaceChildren(element("p", { class: "note", role: "alert" }, error.message));
  }

  function showControls() {
    for (const name of SELECTS) byId(name).value = state[name];
    for (const name of rolewise.FLAGS) byId(name).checked = Boolean(state[name]);
    if (byId("q").value !== state.q) byId("q").value = state.q;
  }

  /** Change the state and redraw; `visit` makes a step that the back button undoes. */
  function update(changes, visit) {
    state = Object.assign({}, state, changes);
    history[visit ? "pushState" : "replaceState"](null, "", rolewise.writeState(state));
    const onlyDetail = Object.keys(changes).every((key) => ["problem", "run", "view"].includes(key));
    if (!onlyDetail) return refreshList();
    drawing += 1;
    showControls();
    list.select(selectedRow());
    return refreshDetail();
  }

  function choose(number, visit) {
    if (number < 0 || number >= rows.length) return;
    const { entry, index, problem } = rows[number];
    const run = state.scope === ALL ? entry.key : "";
    update({ run, problem: index.problems[problem][0] }, visit);
  }

  function adopt() {
    state = rolewise.readState(location.hash);
    const known = state.scope === ALL || (catalogue.runs.get(state.scope) || {}).shard;
    if (state.scope && !known) {
      byId("count").textContent = "";
      rows = [];
      list.reset(0, -1);
      return report(new Error(`There are no trajectories of "${state.scope}" in this report.`));
    }
    if (!VIEWS.includes(state.view)) state.view = VIEWS[0];
    if (!state.scope) state.scope = browsable[0].key;
    scopeShown = null;
    return refreshList();
  }

  const toggle = (name) => update({ [name]: state[name] ? "" : "1" });

  function cycle(name, values, by) {
    const place = values.indexOf(state[name]);
    update({ [name]: values[(place + by + values.length) % values.length] });
  }

  const checkpoints = () => [...byId("checkpoint").options].map((option) => option.value);

  const KEYS = {
    j: () => choose(Math.min(list.selected + 1, rows.length - 1), false),
    k: () => choose(Math.max(list.selected - 1, 0), false),
    "/": () => byId("q").focus(),
    Enter: () => (byId("problem-title") || byId("list")).focus(),
    v: () => cycle("view", VIEWS, 1),
    "[": () => cycle("checkpoint", checkpoints(), -1),
    "]": () => cycle("checkpoint", checkpoints(), 1),
    w: () => toggle("wrong"),
    f: () => toggle("fallback"),
    c: () => toggle("captured"),
    d: () => toggle("differs"),
    Escape: () => update({ problem: "" }, true),
    "?": () => byId("help").showModal(),
  };
  const ARROWS = { ArrowDown: "j", ArrowUp: "k" };

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const inField = event.target.matches("input[type=search], select");
    if (inField) {
      if (event.key === "Escape") byId("list").focus();
      return;
    }
    const onControl = event.target.closest("button, summary, a, input");
    if (event.key === "Enter" && onControl) return;
    const inList = event.target === byId("list");
    const key = inList && ARROWS[event.key] ? ARROWS[event.key] : event.key;
    if (!Object.hasOwn(KEYS, key)) return;
    event.preventDefault();
    KEYS[key]();
  });

  for (const name of SELECTS) {
    byId(name).addEventListener("change", (event) =>
      update(name === "scope" ? { scope: event.target.value, problem: "", run: "" } : { [name]: event.target.value }),
    );
  }
  for (const name of rolewise.FLAGS) byId(name).addEventListener("change", () => toggle(name));
  byId("q").addEventListener("input", (event) => update({ q: event.target.value }));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("show-help").addEventListener("click", () => byId("help").showModal());
  byId("close-help").addEventListener("click", () => byId("help").close());
  window.addEventListener("popstate", adopt);
  window.addEventListener("hashchange", adopt);

  if (browsable.length > 0) adopt();
  else report(new Error("This results folder holds no trajectories, only their summaries."));
})(window.rolewise);
