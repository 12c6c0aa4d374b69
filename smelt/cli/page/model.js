// What the page's data says: graphs, their nodes before and after each pass, what rules rewrote.

const data = JSON.parse(document.getElementById("data").textContent);
const texts = data.texts;

// Text as it is shown: what one cannot see, or what turns the direction of writing, is spelled out.
function shown(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// A node as page.cc writes it.
function readNode(numbers) {
  let at = 4;
  const list = () => numbers.slice(at + 1, at += 1 + numbers[at]);
  const node = { name: numbers[0], op: numbers[1], device: numbers[2], cost: numbers[3] };
  node.attrs = list();
  node.outputs = list();
  node.calls = list();
  node.inputs = numbers.slice(at);  // source, output, source, output, ...
  return node;
}

function sameNode(a, b) {
  const same = (x, y) => x.length === y.length && x.every((v, i) => v === y[i]);
  return a === b || (a.op === b.op && a.device === b.device && same(a.attrs, b.attrs) && same(a.inputs, b.inputs));
}

class GraphModel {
  constructor(graph) {
    this.name = graph.name;
    this.before = graph.before.map(readNode);
    this.steps = graph.steps.map((s) => ({ ...s, put: s.put.map(readNode) }));
    this.states = new Map();
    this.order = this.findOrder();
  }

  get title() { return this.name === "" ? "main graph" : "function " + shown(this.name); }

  // The nodes by name after so many steps.
  at(step) {
    const known = this.states.get(step);
    if (known) return known;
    const nodes = new Map();
    for (const n of this.before) nodes.set(n.name, n);
    for (const s of this.steps.slice(0, step)) {
      for (const name of s.gone) nodes.delete(name);
      for (const n of s.put) nodes.set(n.name, n);
    }
    // A few at a time: both sides, and where the slider was.
    if (this.states.size >= 4) this.states.delete(this.states.keys().next().value);
    this.states.set(step, nodes);
    return nodes;
  }

  // Every name that the graph ever had, with a number that grows from inputs to readers.
  findOrder() {
    const order = new Map();
    for (const n of this.before) order.set(n.name, order.size);
    for (const s of this.steps) {
      const late = new Map();  // nodes without inputs stand where they are read
      for (const n of s.put) {
        if (order.has(n.name)) continue;
        let key = -1;
        for (let i = 0; i < n.inputs.length; i += 2) key = Math.max(key, order.get(n.inputs[i]) ?? -1);
        if (key >= 0) order.set(n.name, key + 1e-3); else late.set(n.name, this.before.length);
      }
      for (const n of s.put) {
        for (let i = 0; i < n.inputs.length; i += 2) {
          const key = late.get(n.inputs[i]);
          if (key !== undefined) late.set(n.inputs[i], Math.min(key, (order.get(n.name) ?? key) - 1e-3));
        }
      }
      for (const [name, key] of late) order.set(name, key);
    }
    return order;
  }

  // Steps that touched the node: {step, what}.
  historyOf(name) {
    const out = [];
    let there = this.before.some((n) => n.name === name);
    this.steps.forEach((s, i) => {
      if (s.put.some((n) => n.name === name)) {
        out.push({ step: i + 1, what: there ? "changed" : "added" });
        there = true;
      } else if (s.gone.includes(name)) {
        out.push({ step: i + 1, what: "removed" });
        there = false;
      }
    });
    return out;
  }
}

const graphs = data.graphs.map((g) => new GraphModel(g));
const graphOfName = new Map(graphs.map((g) => [g.name, g]));
const textIds = new Map(texts.map((t, i) => [t, i]));

// By graph and node: numbers of rewrites.
const rewritesOf = new Map();
for (let i = 0; i < data.rewrites.length; i += 5) {
  for (const node of new Set([data.rewrites[i + 3], data.rewrites[i + 4]])) {
    const key = data.rewrites[i] + ":" + node;
    if (!rewritesOf.has(key)) rewritesOf.set(key, []);
    rewritesOf.get(key).push(i);
  }
}

// Rules that rewrote the node, or made what it is.
function rewrites(graph, name) {
  return (rewritesOf.get(textIds.get(graph.name) + ":" + name) ?? []).map((i) => {
    const [, pass, rule, node, by] = data.rewrites.slice(i, i + 5).map((t) => texts[t]);
    return { pass, rule, node, by };
  });
}

// The cost of the functions that a node calls comes to its own.
const MOST_COST = 2 ** 60;
const costs = new Map();
// Callees first; not by recursion, as chains of calls may be long. A function that calls itself counts once.
function findCosts(name) {
  const todo = [name], begun = new Set();
  while (todo.length > 0) {
    const current = todo.at(-1), graph = graphOfName.get(current);
    if (costs.has(current) && !begun.has(current)) {
      todo.pop();
      continue;
    }
    const nodes = graph ? [...graph.at(graph.steps.length).values()] : [];
    if (!begun.has(current)) {
      begun.add(current);
      costs.set(current, 0);
      for (const n of nodes) for (const f of n.calls) if (!costs.has(texts[f])) todo.push(texts[f]);
      continue;
    }
    begun.delete(current);
    todo.pop();
    costs.set(current, Math.min(MOST_COST, nodes.reduce((sum, n) => sum + costOf(n), 0)));
  }
}
function costOf(node) {
  let cost = node.cost;
  for (const f of node.calls) {
    if (!costs.has(texts[f])) findCosts(texts[f]);
    cost += costs.get(texts[f]);
  }
  return Math.min(MOST_COST, cost);
}

// What changed between two states: sets of names.
function difference(from, to) {
  const added = new Set(), removed = new Set(), changed = new Set();
  for (const [name, n] of to) {
    const old = from.get(name);
    if (!old) added.add(name); else if (!sameNode(old, n)) changed.add(name);
  }
  for (const name of from.keys()) if (!to.has(name)) removed.add(name);
  return { added, removed, changed };
}
