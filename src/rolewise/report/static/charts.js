"use strict";
// Reads a chart's values out under the pointer; without it the charts are complete but silent.
(function () {
  for (const figure of document.querySelectorAll("figure.chart")) {
    const svg = figure.querySelector("svg");
    const values = JSON.parse(figure.dataset.values);
    const readout = figure.querySelector(".readout");
    const rule = figure.querySelector(".rule");

    svg.addEventListener("pointermove", function (event) {
      const box = svg.getBoundingClientRect();
      const across = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      const share = (across - values.left) / (values.right - values.left);
      const x = values.low + share * (values.high - values.low);
      const near = values.series
        .filter((one) => one.points.length > 0)
        .map((one) => [
          one.label,
          one.points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a)),
        ]);
      const step = near[0][1][0];
      const place = values.left + ((step - values.low) / (values.high - values.low)) * (values.right - values.left);
      rule.setAttribute("x1", place);
      rule.setAttribute("x2", place);
      rule.classList.add("on");
      readout.textContent = `step ${step} · ` + near.map(([label, point]) => `${label} ${point[1]}`).join(" · ");
    });
    svg.addEventListener("pointerleave", function () {
      rule.classList.remove("on");
      readout.textContent = "";
    });
  }
})();
