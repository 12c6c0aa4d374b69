// The column beside the graphs: what is known of what was clicked on.

function el(tag, properties, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(properties ?? {})) e[k] = v;
  e.append(...children);
  return e;
}

const MOST_LISTED = 60;

// `act` has goTo(name), openFunction(name), goToStep(step).
class Details {
  constructor(root, act) {
    this.root = root;
    this.act = act;
  }

  clear(text) { this.root.replaceChildren(el("p", { className: "hint", textContent: text })); }

  section(title, rows) {
    if (rows.length === 0) return [];
    const shownRows = rows.slice(0, MOST_LISTED);
    const list = el("ul", {}, ...shownRows.map((r) => el("li", {}, r)));
    const more = rows.length - shownRows.length;
    if (more > 0) list.append(el("li", { className: "hint", textContent: `and ${number(more)} more` }));
    return [el("h3", { textContent: title }), list];
  }

  nodeLink(name, after = "") {
    const b = el("button", { className: "link", textContent: shown(texts[name]) });
    b.addEventListener("click", () => this.act.goTo(name));
    return el("span", {}, b, after);
  }

  facts(rows) {
    const table = el("table", {});
    for (const [what, value] of rows) table.append(el("tr", {}, el("th", { textContent: what }), el("td", { textContent: value })));
    return table;
  }

  group(group, before, after) {
    const rows = [["nodes", this.pair(before, after, group, "nodes", number)], ["cost", this.pair(before, after, group, "cost", compact)]];
    const sum = after.sums.get(group) ?? {}, old = before.sums.get(group) ?? {};
    for (const mark of ["added", "changed"]) if (sum[mark]) rows.push([mark, number(sum[mark])]);
    if (old.removed) rows.push(["removed", number(old.removed)]);
    const ops = new Map();
    for (const [name, n] of (sum.nodes ? after : before).nodes) {
      let item = after.tree.leaves.get(name);
      while (item && item !== group) item = item.parent;
      if (item) ops.set(texts[n.op], (ops.get(texts[n.op]) ?? 0) + 1);
    }
    const byCount = [...ops].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    this.root.replaceChildren(el("h2", { textContent: this.titleOf(group) }), this.facts(rows),
      ...this.section("Ops", byCount.map(([op, n]) => `${shown(op)} × ${number(n)}`)));
  }

  titleOf(group) {
    if (group.kind !== "part") return shown(group.path) || "all nodes";
    return `${group.label} in ${shown(group.path.split("#")[0]) || "the graph"}`;
  }

  pair(before, after, group, what, text) {
    const a = before.sums.get(group)?.[what] ?? 0, b = after.sums.get(group)?.[what] ?? 0;
    return a === b ? text(a) : `${text(a)} → ${text(b)}`;
  }

  node(graph, name, before, after) {
    const old = before.nodes.get(name), now = after.nodes.get(name), n = now ?? old;
    const title = el("h2", { textContent: shown(texts[name]) });
    if (!n) {
      this.root.replaceChildren(title, el("p", { className: "hint", textContent: "not there on either side at this pass" }), ...this.past(graph, name));
      return;
    }
    const state = !now ? "removed" : !old ? "added" : sameNode(old, now) ? "" : "changed";
    if (state) title.append(" ", el("span", { className: "mark " + state, textContent: state }));
    const view = now ? after : before, cost = costOf(n);
    const rows = [["op", old && now && old.op !== now.op ? `${shown(texts[old.op])} → ${shown(texts[now.op])}` : shown(texts[n.op])]];
    if (texts[n.device]) rows.push(["device", shown(texts[n.device])]);
    rows.push(["cost", `${compact(cost)} (${view.total > 0 ? (100 * cost / view.total).toPrecision(2) : 0} % of this graph)`]);
    n.outputs.forEach((t, i) => rows.push([n.outputs.length > 1 ? `output ${i}` : "output", shown(texts[t])]));
    const calls = n.calls.filter((f) => graphOfName.has(texts[f])).map((f) => {
      const b = el("button", { className: "link", textContent: shown(texts[f]) });
      b.addEventListener("click", () => this.act.openFunction(texts[f]));
      return b;
    });
    const readers = [];
    for (const r of view.nodes.values()) {
      for (let i = 0; i < r.inputs.length; i += 2) {
        if (r.inputs[i] === name) {
          readers.push(this.nodeLink(r.name, r.inputs[i + 1] < 0 ? " waits" : ""));
          break;
        }
      }
    }
    this.root.replaceChildren(title, this.facts(rows), ...this.section("Calls", calls), ...this.section("Attributes", this.attrs(old, now)),
      ...this.section("Inputs", this.inputs(n)), ...this.section("Read by", readers), ...this.past(graph, name));
  }

  attrs(old, now) {
    const row = (t, mark) => el("code", { className: mark, textContent: (mark === "removed" ? "− " : mark === "added" ? "+ " : "") + shown(texts[t]) });
    if (!old || !now) return (now ?? old).attrs.map((t) => row(t, ""));
    const was = new Set(old.attrs), is = new Set(now.attrs);
    return [...now.attrs.map((t) => row(t, was.has(t) ? "" : "added")), ...old.attrs.filter((t) => !is.has(t)).map((t) => row(t, "removed"))];
  }

  inputs(n) {
    const out = [];
    for (let i = 0; i < n.inputs.length && out.length <= MOST_LISTED; i += 2) {
      const port = n.inputs[i + 1];
      out.push(this.nodeLink(n.inputs[i], port < 0 ? " (control)" : port > 0 ? ":" + port : ""));
    }
    out.length = Math.max(out.length, n.inputs.length / 2);  // so that the rest is counted
    return out;
  }

  past(graph, name) {
    const steps = graph.historyOf(name).map(({ step, what }) => {
      const b = el("button", { className: "link", textContent: `${step}. ${shown(graph.steps[step - 1].pass)}` });
      b.addEventListener("click", () => this.act.goToStep(step));
      return el("span", {}, b, " ", el("span", { className: "mark " + what, textContent: what }));
    });
    const rules = rewrites(graph, name).map(({ pass, rule, node, by }) => {
      const became = by && by !== node ? (node === texts[name] ? ` → ${by}` : ` (was ${node})`) : "";
      return shown(`${pass}/${rule}${became}`);
    });
    return [...this.section("Passes that touched it", steps), ...this.section("Rules that rewrote it", rules)];
  }
}
