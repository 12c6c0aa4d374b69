// What the person sees and asks for: graph, pass, what is open, what is selected.

const MOST_BOXES = 1200, FIRST_BOXES = 36, MOST_FOUND = 100;
const byId = (id) => document.getElementById(id);

const page = { graph: null, tree: null, step: 0, open: new Set(), selected: null, before: null, after: null };
const trees = new Map();

const act = {
  toggle(group) {
    if (page.open.has(group)) page.open.delete(group); else openGroup(group);
    page.selected = group;
    draw(group);
  },
  select(leaf) {
    page.selected = leaf;
    draw(leaf);
  },
  // Opens what is around the node and shows it.
  goTo(name) {
    const leaf = page.tree.leaves.get(name);
    if (!leaf) return;
    if (page.before.hidden.has(name) || page.after.hidden.has(name)) {
      byId("constants").checked = true;
      look();
    }
    for (let g = leaf.parent; g; g = g.parent) openGroup(g);
    page.selected = leaf;
    draw();
    for (const pane of panes) pane.center(leaf);
  },
  openFunction(name) {
    byId("graph").value = String(graphs.indexOf(graphOfName.get(name)));
    chooseGraph();
  },
  goToStep(step) { setStep(step); },
};

const panes = [new Pane(byId("left"), act), new Pane(byId("right"), act)];
const details = new Details(byId("details"), act);

function openGroup(group) {
  page.open.delete(group);
  page.open.add(group);  // the last opened is the last to be closed
}

function countBoxes(view) {
  let boxes = 0;
  const count = (group) => {
    for (const child of group.children) {
      if (!view.draws(child)) continue;
      ++boxes;
      if (page.open.has(child)) count(child);
    }
  };
  count(page.tree.root);
  return boxes;
}

// Closes what was opened first until the rest can be drawn quickly.
function closeTooMany(keep) {
  const needed = new Set([page.tree.root]);
  for (let g = keep; g; g = g.parent) needed.add(g);
  let closed = 0;
  for (const group of [...page.open]) {
    if (Math.max(countBoxes(page.before), countBoxes(page.after)) <= MOST_BOXES) break;
    if (needed.has(group)) continue;
    page.open.delete(group);
    ++closed;
  }
  byId("notice").textContent = closed > 0 ? `Closed ${number(closed)} groups: at most ${number(MOST_BOXES)} boxes are drawn.` : "";
}

// Opens scopes of the new graph while all fits one look.
function openFirst() {
  page.open = new Set([page.tree.root]);
  for (const group of page.open) {
    for (const child of group.children) {
      if (!(child instanceof Group) || !page.after.draws(child)) continue;
      page.open.add(child);
      if (countBoxes(page.after) > FIRST_BOXES) page.open.delete(child);
    }
  }
}

// The two states that are compared.
function look() {
  const { graph, tree, step } = page;
  const base = byId("base").value === "first" ? 0 : Math.max(0, step - 1);
  const from = graph.at(base), to = graph.at(step);
  const { added, removed, changed } = difference(from, to);
  const marks = (...sets) => {
    const out = new Map();
    for (const [mark, set] of sets) for (const name of set) out.set(name, mark);
    return out;
  };
  const constants = byId("constants").checked;
  page.before = new View(tree, from, marks(["removed", removed], ["changed", changed]), constants);
  page.after = new View(tree, to, marks(["added", added], ["changed", changed]), constants);
  const passed = step > 0 ? graph.steps[step - 1] : null;
  byId("leftName").textContent = base === 0 ? "Before" : `After ${base}. ${shown(graph.steps[base - 1].pass)}`;
  byId("rightName").textContent = passed ? `After ${step}. ${shown(passed.pass)}` : "Before the first pass";
  byId("leftCount").textContent = `${number(from.size)} nodes, cost ${compact(page.before.total)}`;
  byId("rightCount").textContent = `${number(to.size)} nodes, cost ${compact(page.after.total)}`;
  for (const [id, set] of [["added", added], ["removed", removed], ["changed", changed]]) byId(id).textContent = number(set.size);
  byId("passName").textContent = passed ? `${step} of ${graph.steps.length}: ${shown(passed.pass)}` : `0 of ${graph.steps.length}: as it was`;
  const why = [];
  if (passed?.outcome === "undone") why.push(`undone: ${shown(passed.why ?? "")}`);
  if (passed && !passed.kept) why.push("too much changed to keep each step: what this pass did stands in a later one");
  byId("stepNotice").textContent = why.join("; ");
  document.querySelectorAll("#passes li").forEach((li, i) => li.classList.toggle("now", i === step));
}

function draw(held) {
  closeTooMany(page.selected instanceof Group ? page.selected : page.selected?.parent);
  const scale = Math.max(page.before.total, page.after.total);
  panes[0].draw(page.before, page.open, page.selected, scale, held);
  panes[1].draw(page.after, page.open, page.selected, scale, held);
  const undrawn = panes.reduce((sum, p) => sum + p.undrawn, 0);
  byId("undrawn").textContent = undrawn > 0 ? `${number(undrawn)} long lines are not drawn; a node's details have them.` : "";
  if (page.selected instanceof Leaf) details.node(page.graph, page.selected.name, page.before, page.after);
  else details.group(page.selected ?? page.tree.root, page.before, page.after);
}

function setStep(step) {
  page.step = Math.max(0, Math.min(page.graph.steps.length, step));
  byId("step").value = String(page.step);
  look();
  draw(page.selected);
}

function listPasses() {
  const { graph } = page;
  const row = (step, name, note, cls) => {
    const b = el("button", { className: "link", textContent: name });
    b.addEventListener("click", () => setStep(step));
    return el("li", { className: cls }, b, el("span", { className: "hint", textContent: note }));
  };
  byId("passes").replaceChildren(row(0, "as it was", `${number(graph.before.length)} nodes`, ""),
    ...graph.steps.map((s, i) => row(i + 1, `${i + 1}. ${shown(s.pass)}`,
      s.put.length + s.gone.length > 0 ? `${number(s.nodes)} nodes, ${number(s.put.length)} new or changed, ${number(s.gone.length)} gone` : s.outcome,
      s.put.length + s.gone.length > 0 ? "" : "quiet")));
}

function chooseGraph() {
  page.graph = graphs[Number(byId("graph").value)];
  if (!trees.has(page.graph)) trees.set(page.graph, new Tree(page.graph));
  page.tree = trees.get(page.graph);
  page.selected = null;
  page.step = page.graph.steps.length;
  Object.assign(byId("step"), { max: page.graph.steps.length, value: page.step });
  byId("search").value = "";
  find();
  listPasses();
  look();
  openFirst();
  draw();
  for (const pane of panes) pane.fit();
}

function find() {
  const wanted = byId("search").value.trim().toLowerCase(), list = byId("found");
  list.hidden = wanted === "";
  if (wanted === "") return;
  const found = [];
  for (const name of page.tree.leaves.keys()) {
    const n = page.after.nodes.get(name) ?? page.before.nodes.get(name);
    if (texts[name].toLowerCase().includes(wanted) || (n && texts[n.op].toLowerCase().includes(wanted))) found.push([name, n]);
  }
  const rows = found.slice(0, MOST_FOUND).map(([name, n]) => {
    const b = el("button", { className: "link", textContent: shown(texts[name]) });
    b.addEventListener("click", () => act.goTo(name));
    const there = page.after.nodes.has(name) ? "" : page.before.nodes.has(name) ? ", removed" : ", not at this pass";
    return el("li", {}, b, el("span", { className: "hint", textContent: (n ? shown(texts[n.op]) : "") + there }));
  });
  const more = found.length > MOST_FOUND ? `, the first ${MOST_FOUND} shown` : "";
  list.replaceChildren(el("li", { className: "hint", id: "foundCount", textContent: `${number(found.length)} found${more}` }), ...rows);
}

function start() {
  byId("title").textContent = shown(data.title.split("/").findLast((w) => w !== "") ?? "a graph");
  byId("title").title = shown(data.title);
  document.title = `${shown(data.title)} optimized`;
  if (graphs.length === 0) {
    byId("notice").textContent = "No pass ran, so there is nothing to compare.";
    return;
  }
  // Functions that no graph calls at the end were inlined or replaced.
  const called = new Set([""]);
  for (const name of called) {
    const graph = graphOfName.get(name);
    if (graph) for (const n of graph.at(graph.steps.length).values()) for (const f of n.calls) called.add(texts[f]);
  }
  byId("graph").append(...graphs.map((g, i) => el("option", { value: String(i),
    textContent: g.title + (called.has(g.name) ? "" : " (no longer called from the graph)") })));
  byId("graph").addEventListener("change", chooseGraph);
  let asked = 0;
  byId("step").addEventListener("input", () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => setStep(Number(byId("step").value)));
  });
  byId("previous").addEventListener("click", () => setStep(page.step - 1));
  byId("next").addEventListener("click", () => setStep(page.step + 1));
  for (const id of ["base", "constants"]) byId(id).addEventListener("change", () => { look(); draw(page.selected); });
  byId("sides").addEventListener("change", () => {
    document.body.dataset.sides = byId("sides").value;
    for (const pane of panes) pane.fit();
  });
  byId("reset").addEventListener("click", () => {
    openFirst();
    page.selected = null;
    draw();
    for (const pane of panes) pane.fit();
  });
  let typed = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(find, 150);
  });
  for (const [i, side] of ["left", "right"].entries()) {
    const middle = (by) => () => {
      const box = panes[i].canvas.getBoundingClientRect();
      panes[i].zoomAt(by, box.width / 2, box.height / 2);
    };
    byId(side).querySelector(".in").addEventListener("click", middle(1.3));
    byId(side).querySelector(".out").addEventListener("click", middle(1 / 1.3));
    byId(side).querySelector(".fit").addEventListener("click", () => panes[i].fit());
  }
  const story = data.story.map((e) => `${e.graph ? shown(e.graph) + ": " : ""}${shown(`${e.pass}/${e.rule}`)}: ${e.fired ? "" : "did not fire: "}${shown(e.text)}`);
  if (story.length > 0) byId("story").append(...details.section("The story that --explain asked for", story));
  if (data.rewrites.length / 5 < data.fired) byId("story").append(el("p", { className: "hint", textContent: `Of ${number(data.fired)} rewrites the first ${number(data.rewrites.length / 5)} are kept.` }));
  chooseGraph();
}

start();
