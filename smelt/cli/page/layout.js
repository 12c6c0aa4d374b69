// Where boxes and lines go. Each open group is laid out by itself (dagre), inner ones first; nothing is done for what is closed.

const FRAME = 14, HEADER = 26;
const RANKS_CROSSED = 4;    // for each box, by the lines that dagre gets: it grows with them
const MOST_STRAIGHT = 80;   // lines drawn beside dagre's

// One side of the page: a state of the graph, summed up for the groups of the tree.
class View {
  constructor(tree, nodes, marks, withConstants) {
    this.nodes = nodes;
    this.marks = marks;     // by name: "added", "removed" or "changed"
    this.sums = new Map();  // by group
    this.lines = new Map(); // by group: lines between its children
    this.reaches = new Map(); // by item: whether lines come from or go to beyond its group
    this.total = 0;
    this.tree = tree;
    this.hidden = new Set();     // constants that something reads
    this.constants = new Map();  // by reader: how many of them
    if (!withConstants) {
      for (const n of nodes.values()) {
        for (let i = 0; i < n.inputs.length; i += 2) {
          const source = nodes.get(n.inputs[i]);
          if (source && texts[source.op] === "Const") this.hidden.add(source.name);
        }
      }
    }
    for (const [name, n] of nodes) {
      const cost = costOf(n), mark = marks.get(name);
      this.total += cost;
      for (let g = tree.leaves.get(name).parent; g; g = g.parent) {
        const sum = this.sumOf(g);
        ++sum.nodes;
        sum.cost += cost;
        if (mark) ++sum[mark];
        if (!this.hidden.has(name)) ++sum.drawn;
      }
      this.addLines(name, n);
    }
  }

  sumOf(group) {
    let sum = this.sums.get(group);
    if (!sum) this.sums.set(group, sum = { nodes: 0, drawn: 0, cost: 0, added: 0, removed: 0, changed: 0 });
    return sum;
  }

  addLines(name, n) {
    const reader = this.tree.leaves.get(name);
    for (let i = 0; i < n.inputs.length; i += 2) {
      const source = this.tree.leaves.get(n.inputs[i]), control = n.inputs[i + 1] < 0;
      if (!source || source === reader || !this.nodes.has(source.name)) continue;
      if (this.hidden.has(source.name)) {
        this.constants.set(name, (this.constants.get(name) ?? 0) + 1);
        continue;
      }
      if (this.hidden.has(name)) continue;
      const group = commonGroup(source, reader);
      const a = childOf(group, source), b = childOf(group, reader);
      if (!this.lines.has(group)) this.lines.set(group, new Map());
      const lines = this.lines.get(group);
      if (!lines.has(a)) lines.set(a, new Map());
      const line = lines.get(a).get(b) ?? { count: 0, control: true };
      ++line.count;
      line.control &&= control;
      lines.get(a).set(b, line);
      for (let item = source; item !== a; item = item.parent) this.reach(item).out = true;
      for (let item = reader; item !== b; item = item.parent) this.reach(item).in = true;
    }
  }

  reach(item) {
    if (!this.reaches.has(item)) this.reaches.set(item, { in: false, out: false });
    return this.reaches.get(item);
  }

  draws(item) {
    if (item instanceof Leaf) return this.nodes.has(item.name) && !this.hidden.has(item.name);
    return (this.sums.get(item)?.drawn ?? 0) > 0;
  }
}

function textWidth(text, size) { return text.length * size * 0.58; }

// The end of a long text tells names apart.
function fitted(text, most) { return text.length <= most ? text : "…" + text.slice(text.length - most + 1); }

// What is written in the box of a leaf or of a closed group.
function boxTexts(view, item) {
  if (item instanceof Leaf) {
    const n = view.nodes.get(item.name), constants = view.constants.get(item.name);
    return { title: fitted(shown(item.label), 30), under: fitted(shown(texts[n.op]), 30) + (constants ? `  ◦${constants}` : "") };
  }
  const sum = view.sums.get(item);
  return { title: fitted(shown(item.label), 30), under: `${number(sum.nodes)} node${sum.nodes === 1 ? "" : "s"}` };
}

const layouts = new Map();  // by what dagre was asked

function placeBoxes(boxes, lines) {
  const question = JSON.stringify([boxes.map((b) => [b.w, b.h]), lines.map((l) => [l.from, l.to])]);
  const known = layouts.get(question);
  if (known) return known;
  if (layouts.size > 400) layouts.clear();
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", ranker: "tight-tree", nodesep: 16, ranksep: 26, edgesep: 8 });
  boxes.forEach((b, i) => graph.setNode(i, { width: b.w, height: b.h }));
  for (const l of lines) graph.setEdge(l.from, l.to, {});
  dagre.layout(graph);
  const answer = {
    at: boxes.map((b, i) => ({ x: graph.node(i).x - b.w / 2, y: graph.node(i).y - b.h / 2 })),
    points: lines.map((l) => graph.edge(l.from, l.to).points),
    w: graph.graph().width, h: graph.graph().height,
  };
  layouts.set(question, answer);
  return answer;
}

// {w, h, boxes: [{item, x, y, w, h, inner}], lines: [{points, ...}], undrawn} of an open group.
function layOut(view, group, open) {
  const boxes = [];
  for (const item of group.children) {
    if (!view.draws(item)) continue;
    if (item instanceof Group && open.has(item)) {
      const inner = layOut(view, item, open);
      const title = textWidth(fitted(shown(item.label), 40), 12) + 150;
      boxes.push({ item, inner, w: Math.max(inner.w + 2 * FRAME, title), h: inner.h + HEADER + FRAME });
    } else {
      const { title, under } = boxTexts(view, item);
      const marks = item instanceof Group ? 60 : 0;
      const sign = item instanceof Group || view.marks.has(item.name) ? 16 : 0;
      const w = Math.max(64, textWidth(title, 12) + sign, textWidth(under, 10) + marks) + 22;
      boxes.push({ item, w: Math.ceil(w), h: 38 });
    }
  }
  const placeOf = new Map(boxes.map((b, i) => [b.item, i]));
  let lines = [];
  for (const [a, targets] of view.lines.get(group) ?? []) {
    for (const [b, line] of targets) {
      if (placeOf.has(a) && placeOf.has(b)) lines.push({ from: placeOf.get(a), to: placeOf.get(b), ...line });
    }
  }
  // Children stand in the order from inputs to readers, but for loops.
  const rank = boxes.map(() => 0);
  lines.sort((a, b) => a.from - b.from || a.to - b.to);
  for (const l of lines) if (l.from < l.to) rank[l.to] = Math.max(rank[l.to], rank[l.from] + 1);
  for (const l of lines) l.crossed = Math.abs(rank[l.to] - rank[l.from]) + (l.from > l.to ? 2 : 0);
  lines.sort((a, b) => a.crossed - b.crossed || a.from - b.from || a.to - b.to);
  let crossed = 0;
  const routed = lines.filter((l) => (crossed += l.crossed) <= 60 + RANKS_CROSSED * boxes.length);
  const straight = lines.slice(routed.length);
  const joined = new Set(routed.flatMap((l) => [l.from, l.to]));
  const inGraph = boxes.map((_, i) => i).filter((i) => joined.has(i));
  const newPlace = new Map(inGraph.map((i, k) => [i, k]));
  const out = { w: 0, h: 0, boxes, lines: [], undrawn: Math.max(0, straight.length - MOST_STRAIGHT) };
  if (inGraph.length > 0) {
    const placed = placeBoxes(inGraph.map((i) => boxes[i]), routed.map((l) => ({ from: newPlace.get(l.from), to: newPlace.get(l.to) })));
    inGraph.forEach((i, k) => Object.assign(boxes[i], placed.at[k]));
    routed.forEach((l, k) => out.lines.push({ ...l, points: placed.points[k] }));
    out.w = placed.w;
    out.h = placed.h;
  }
  placeLoose(boxes.filter((_, i) => !joined.has(i)), out);
  for (const l of straight.slice(0, MOST_STRAIGHT)) {
    const a = boxes[l.from], b = boxes[l.to];
    out.lines.push({ ...l, faint: true, points: [{ x: a.x + a.w / 2, y: a.y + a.h }, { x: b.x + b.w / 2, y: b.y }] });
  }
  return out;
}

// Boxes that no line joins stand in rows below the others.
function placeLoose(loose, out) {
  if (loose.length === 0) return;
  const area = loose.reduce((sum, b) => sum + (b.w + 16) * (b.h + 16), 0);
  const most = Math.max(out.w, Math.sqrt(area * 1.6), ...loose.map((b) => b.w));
  let x = 0, y = out.h > 0 ? out.h + 26 : 0, high = 0;
  for (const b of loose) {
    if (x > 0 && x + b.w > most) {
      x = 0;
      y += high + 16;
      high = 0;
    }
    Object.assign(b, { x, y });
    x += b.w + 16;
    high = Math.max(high, b.h);
    out.w = Math.max(out.w, b.x + b.w);
  }
  out.h = y + high;
}
