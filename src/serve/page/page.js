// Asks the service what is new, once a second while anybody looks, and shows it.

import { Chart, clock } from "./chart.js";
import { CELLS, NodeMap } from "./map.js";

const EVERY_MS = 1000;
const MOST_SAMPLES = 720;
const MOST_DECISIONS = 100;
const WHY = {
  capacity: "fewer GPUs are free than it asks for",
  fragmentation: "enough GPUs are free, but they cannot be packed",
  constraint: "CPU, memory, model or topology forbids it",
  space: "it fits, but not within the policy, or only with moves that are not allowed",
};

const element = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString("en");
const share = (part, all) => (all ? part / all : 0);
const percent = (part, all) => `${(100 * share(part, all)).toFixed(1)} %`;

let token = "";
let topology;
let known = {};
let samples = [];
const waits = new Map();

const tip = element("tip");
const map = new NodeMap(element("map"), hover);
const use = new Chart(element("use"), element("use-now"), {
  most: 100,
  lines: [{ name: "--use", value: (sample) => 100 * share(sample.allocated, sample.gpus) }],
  say: (sample) => `${percent(sample.allocated, sample.gpus)} of ${count(sample.gpus)}`,
});
const sif = new Chart(element("sif"), element("sif-now"), {
  lines: [
    { name: "--partial", value: (sample) => sample.partial },
    { name: "--avoidable", value: (sample) => Math.max(0, sample.n_sif) },
  ],
  say: (sample) => `${count(sample.partial)} partial, ${count(sample.n_sif)} avoidable`,
});

class Refused extends Error {
  constructor(status, { error, message }) {
    super(message);
    Object.assign(this, { status, word: error });
  }
}

async function ask(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { headers, cache: "no-store" });
  if (response.status === 401) throw new Refused(401, { message: "a token is needed" });
  const body = await response.json();
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

function say(state, words) {
  const status = element("status");
  if (status.textContent !== words) status.textContent = words;
  status.dataset.state = state;
}

// Fills a list of terms with pairs of a term and its values.
function terms(list, entries) {
  while (list.children.length < entries.length) list.append(document.createElement("div"));
  while (list.children.length > entries.length) list.lastChild.remove();
  entries.forEach(([term, ...values], i) => {
    const line = list.children[i];
    while (line.children.length < values.length + 1) line.append(document.createElement(line.children.length ? "dd" : "dt"));
    [term, ...values].forEach((text, j) => {
      if (line.children[j].textContent !== text) line.children[j].textContent = text;
    });
  });
}

function row(cells) {
  const line = document.createElement("tr");
  for (const [text, attributes] of cells) {
    const cell = document.createElement("td");
    cell.textContent = text;
    for (const [name, value] of Object.entries(attributes ?? {})) cell.setAttribute(name, value);
    line.append(cell);
  }
  return line;
}

function hover(node, x, y) {
  tip.hidden = node < 0;
  if (node < 0) return;
  const { nodes, racks, rack, domains, domain, models, model, devices } = topology;
  const where = [
    rack[node] >= 0 && `rack ${racks[rack[node]]}`,
    domain[node] >= 0 && `domain ${domains[domain[node]]}`,
    model[node] >= 0 && models[model[node]],
  ];
  const kinds = new Array(CELLS.length).fill(0);
  for (let gpu = 0; gpu < devices[node]; gpu++) kinds[map.cell(node, gpu)]++;
  const gpus = CELLS.flatMap(([, words], cell) => (kinds[cell] ? [`${kinds[cell]} ${words}`] : []));
  tip.textContent = [nodes[node], where.filter(Boolean).join(" · "), ...gpus].filter(Boolean).join("\n");
  const box = map.canvas;
  tip.style.left = `${Math.max(0, Math.min(x + 14, box.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + 14 + tip.offsetHeight > box.clientHeight ? Math.max(0, y - tip.offsetHeight - 10) : y + 14}px`;
}

function showTotals({ totals, version, backend, age_s, waiting }) {
  const sum = (key) => totals.products.reduce((sum, product) => sum + product[key], 0);
  const [allocated, free, stranded, unavailable] = ["allocated", "free", "stranded", "unavailable"].map(sum);
  const gpus = allocated + free + stranded + unavailable;
  const nodes = totals.empty + totals.partial + totals.full;
  const gang = totals.gangs.findLast(({ gpus_per_instance }) => gpus_per_instance <= 8);
  terms(element("facts"), [
    ["version", version],
    ["backend", backend],
    ["changed", age_s < 60 ? `${age_s.toFixed(0)} s ago` : `${(age_s / 60).toFixed(0)} min ago`],
    ["calls waiting", count(waiting)],
  ]);
  terms(element("tiles"), [
    ["GPUs allocated", count(allocated), `${percent(allocated, gpus)} of ${count(gpus)}`],
    ["GPUs free", count(free), `${count(stranded)} more stranded, ${count(unavailable)} unavailable`],
    ["Avoidable partial nodes", count(totals.n_sif), `SIF ${share(totals.n_sif, nodes).toFixed(4)}`],
    ["Partial nodes", count(totals.partial), `F ${share(totals.partial, nodes).toFixed(4)}, Φ* ${count(totals.phi_star)}`],
    ["Empty nodes", count(totals.empty), `of ${count(nodes)}, ${count(totals.unschedulable)} unschedulable`],
    ...(gang ? [[`Largest gang of ${gang.gpus_per_instance}s, GPUs`, count(gang.cluster), `in a rack ${count(gang.rack)}, in a domain ${count(gang.domain)}`]] : []),
    ["Jobs running", count(totals.running_jobs), `${count(totals.intact_racks)} racks, ${count(totals.intact_domains)} domains intact`],
    ["Jobs waiting", count(totals.waiting_jobs), totals.waiting_jobs ? `for ${count(totals.waiting_gpus)} GPUs` : "none that the service was told of"],
  ]);
  map.canvas.setAttribute("aria-label", `Map of ${count(nodes)} nodes: ${count(totals.empty)} empty, ${count(totals.partial)} partial, ${count(totals.full)} full`);
}

function showLegend() {
  const counts = map.counts();
  const list = element("legend");
  CELLS.forEach(([name, words], cell) => {
    const line = list.children[cell] ?? list.appendChild(document.createElement("li"));
    line.dataset.cell = name;
    line.textContent = `${count(counts[cell])} ${words}`;
    line.hidden = !counts[cell];
  });
}

function showDecisions(decisions) {
  const body = element("decisions").tBodies[0];
  for (const decision of decisions) {
    const { at_ms, job, status, why, nodes, instances, gpus, moves, delta_sif_nodes, via, commit } = decision;
    const more = instances > nodes.length ? ` … ${count(instances)} instances` : "";
    const reason = why ? WHY[why] ?? why : nodes.join(", ") + more;
    const known = (n) => (n === null ? "" : count(n));
    const line = row([
      [clock(at_ms, true)],
      [job, { title: job }],
      [status, { "data-status": status }],
      [reason, { title: why ? `${why}: ${reason}` : reason }],
      [gpus ? count(gpus) : "", { class: "number" }],
      [moves ? count(moves) : "", { class: "number" }],
      [known(delta_sif_nodes), { class: "number" }],
      [commit ? via : `${via}, not done`],
    ]);
    if (!commit) line.dataset.asked = "";
    body.prepend(line);
    waits.delete(job);
    if (status === "blocked") waits.set(job, why);
  }
  while (body.rows.length > MOST_DECISIONS) body.lastChild.remove();
  while (waits.size > 1000) waits.delete(waits.keys().next().value);
  const reasons = new Map();
  waits.forEach((why) => reasons.set(why, (reasons.get(why) ?? 0) + 1));
  const parts = [...reasons].map(([why, n]) => `${count(n)} by ${why ?? "other reasons"}`);
  element("blocked").textContent = waits.size ? `Blocked when last asked: ${count(waits.size)} jobs, ${parts.join(", ")}.` : "No job was blocked when last asked.";
}

function showCalls(calls) {
  const time = (us) => (us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(us < 10_000 ? 2 : 1)} ms`);
  const number = { class: "number" };
  element("calls").tBodies[0].replaceChildren(...calls.map(({ endpoint, calls, p50_us, p99_us }) =>
    row([[endpoint, { title: endpoint }], [count(calls), number], [time(p50_us), number], [time(p99_us), number]])));
}

function forget() {
  [topology, known, samples] = [undefined, {}, []];
  waits.clear();
  element("decisions").tBodies[0].replaceChildren();
}

async function look() {
  const words = new URLSearchParams(known);
  const state = await ask(`/v1/page/state?${words}`);
  if (known.since && known.since.split("-")[0] !== state.version.split("-")[0]) forget();
  if (topology?.topology !== state.topology) {
    topology = await ask("/v1/page/cluster");
    // It may have changed again since: the next look asks for all of it.
    if (topology.topology !== state.topology) return forget();
    map.setTopology(topology);
    // Who was blocked was blocked on another cluster.
    waits.clear();
  }
  if (!state.nodes.at || state.nodes.at.length) {
    map.setRows(state.nodes);
    showLegend();
  }
  known = { since: state.version, samples: state.samples.next, decisions: state.decisions.next };
  showTotals(state);
  if (state.samples.items.length || !samples.length) {
    samples = [...samples, ...state.samples.items].slice(-MOST_SAMPLES);
    use.set(samples);
    sif.set(samples);
  }
  showDecisions(state.decisions.items);
  showCalls(state.calls);
  say("live", "live");
  document.documentElement.dataset.version = state.version;
}

async function run() {
  for (let wait = EVERY_MS; ; await new Promise((resolve) => setTimeout(resolve, wait))) {
    if (document.hidden) continue;
    try {
      await look();
      wait = EVERY_MS;
    } catch (error) {
      if (error.status === 401) return element("ask").showModal();
      if (error.word === "no-cluster") forget();
      say("bad", error.status ? error.message : "the service does not answer");
      wait = Math.min(2 * wait, 15_000);
    }
  }
}

element("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = new FormData(event.target).get("token").trim();
  event.target.reset();
  element("ask").close();
  run();
});
element("ask").addEventListener("close", () => { if (!token) say("bad", "a token is needed: load the page again"); });
element("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = event.target.elements.node;
  input.setCustomValidity(map.find(input.value.trim()) ? "" : "there is no such node");
  input.reportValidity();
});
element("find").addEventListener("input", (event) => event.target.setCustomValidity(""));
element("zoom-in").addEventListener("click", () => map.zoom(1));
element("zoom-out").addEventListener("click", () => map.zoom(-1));
element("zoom-fit").addEventListener("click", () => map.fit());
run();
