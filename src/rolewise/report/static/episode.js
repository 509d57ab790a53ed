"use strict";
// Draws episodes. Everything that a model wrote enters the page as a text node.
(function (rolewise) {
  const element = rolewise.element;

  // Controls that reorder or hide text would let an output look like another one.
  const DECEPTIVE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

  function plain(text) {
    return text.replace(DECEPTIVE, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  }

  function mark(correct) {
    if (correct === null) return null;
    return element(
      "span",
      { class: "mark " + (correct ? "right" : "wrong") },
      correct ? "✓ correct" : "✗ wrong",
    );
  }

  function tag(text, kind) {
    return element("span", { class: "tag " + (kind || "") }, text);
  }

  function output(text, label) {
    if (text === "") return element("p", { class: "quiet" }, "(empty)");
    return element("pre", { class: "output", tabindex: "0", role: "region", "aria-label": label }, plain(text));
  }

  function prompt(call) {
    const details = element(
      "details",
      { class: "prompt" },
      element("summary", {}, "prompt, " + call.promptTokens + " tokens"),
    );
    details.addEventListener("toggle", function () {
      if (details.open && details.childElementCount === 1) {
        details.append(output(call.prompt, "prompt of the " + call.role));
      }
    });
    return details;
  }

  function facts(call) {
    const parts = [call.tokens + (call.tokens === 1 ? " token" : " tokens")];
    if (call.finish !== "stop") parts.push(call.finish === "length" ? "cut off at the cap" : call.finish);
    if (call.entropy !== null) parts.push("entropy " + call.entropy.toFixed(2));
    return parts.join(" · ");
  }

  function entry(name, value) {
    // An answer of several lines is a program, which the output above shows already.
    return value === null || value.includes("\n") ? [] : [element("dt", {}, name), element("dd", {}, plain(value))];
  }

  function card(call, role) {
    const place = [call.role];
    if (call.slots > 1) place.push("slot " + (call.slot + 1));
    if (call.turns > 1) place.push("turn " + (call.turn + 1));
    const title = place.join(" · ");
    const body = element("details", { class: "call" + (call.graded ? " graded" : "") });
    body.open = role === "any" || role === call.role;
    body.append(
      element(
        "summary",
        {},
        element("strong", {}, title),
        mark(call.correct),
        call.graded ? tag("graded", "info") : null,
        call.fallback ? tag("fallback", "warn") : null,
        call.captured ? tag("captured", "warn") : null,
      ),
      output(call.text, "output of " + title),
      element(
        "dl",
        { class: "facts" },
        ...entry("answer", call.answer),
        ...entry("parsed", call.parsed),
      ),
      element("p", { class: "quiet" }, facts(call)),
      prompt(call),
    );
    return body;
  }

  /** One column: a cell's episode at one checkpoint, or the reason why there is none. */
  rolewise.drawColumn = function (column, role) {
    const head = element(
      "header",
      {},
      element("h3", {}, column.title),
      element("p", { class: "quiet" }, column.subtitle),
    );
    const section = element("section", { class: "column", "aria-label": column.title }, head);
    if (!column.episode) {
      section.append(element("p", { class: "note" }, column.reason));
      return section;
    }
    head.append(
      element(
        "p",
        {},
        mark(column.episode.correct),
        " ",
        element("span", { class: "quiet" }, "reward " + column.episode.reward),
      ),
    );
    section.append(...column.episode.calls.map((call) => card(call, role)));
    return section;
  };
})(window.rolewise);
