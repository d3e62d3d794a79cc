"use strict";
/* Under a pointer, a chart over time says what its lines show. Without this the page lacks nothing else. */
(() => {
  const runs = JSON.parse(document.getElementById("series").textContent);
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const time = (seconds) => {
    const [name, unit] = units.find(([, unit]) => seconds >= unit) || units[3];
    return (seconds / unit).toFixed(unit === 1 ? 0 : 1) + " " + name;
  };
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : 1 });
  const shown = (at) => { const box = document.getElementById("run-" + at); return !box || box.checked; };
  for (const figure of document.querySelectorAll("figure[data-gauge]")) {
    const plot = figure.querySelector(".plot");
    const output = figure.querySelector("output");
    const { gauge, seconds, whole } = figure.dataset;
    const [width, left, right] = [plot.dataset.width, plot.dataset.left, plot.dataset.right].map(Number);
    const value = (amount) => whole ? number(amount * 100 / whole) + " %" : number(amount);
    const cursor = document.createElement("div");
    cursor.className = "cursor";
    cursor.hidden = true;
    plot.append(cursor);
    const clear = () => { cursor.hidden = true; output.replaceChildren(); };
    plot.addEventListener("pointerleave", clear);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const share = ((event.clientX - box.left) / box.width * width - left) / (right - left);
      if (share < 0 || share > 1) { return clear(); }
      const at = share * seconds;
      cursor.hidden = false;
      cursor.style.left = event.clientX - box.left + "px";
      const parts = [["after " + time(at)]];
      runs.forEach((run, place) => {
        const bucket = Math.floor(at / run.width_s);
        const extent = run.gauges[gauge][bucket];
        if (!extent || !shown(place)) { return; }
        const [sum, least, most] = extent;
        const range = least === most ? "" : " (" + value(least) + " to " + value(most) + ")";
        parts.push([run.policy + " " + value(sum / run.seconds[bucket]) + range]);
      });
      output.replaceChildren(...parts.map(([text]) => {
        const span = document.createElement("span");
        span.textContent = text;
        return span;
      }));
    });
  }
})();
