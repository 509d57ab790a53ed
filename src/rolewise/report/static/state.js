"use strict";
// What the trajectory browser shows lives in the address: every view is a link.
(function (rolewise) {
  const DEFAULTS = {
    scope: "",
    run: "",
    problem: "",
    sample: "0",
    view: "checkpoints",
    checkpoint: "any",
    role: "any",
    wrong: "",
    fallback: "",
    captured: "",
    differs: "",
    q: "",
  };

  rolewise.FLAGS = ["wrong", "fallback", "captured", "differs"];

  rolewise.readState = function (hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const state = Object.assign({}, DEFAULTS);
    for (const key of Object.keys(DEFAULTS)) {
      if (given.has(key)) state[key] = given.get(key);
    }
    return state;
  };

  /** Only what differs from the default is written, so that links stay short. */
  rolewise.writeState = function (state) {
    const shown = new URLSearchParams();
    for (const [key, usual] of Object.entries(DEFAULTS)) {
      if (state[key] !== usual && state[key] !== "") shown.set(key, state[key]);
    }
    return "#" + shown.toString();
  };
})(window.rolewise);
