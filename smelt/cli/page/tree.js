// Name scopes as a tree that stays the same whatever the step: it has every node that the graph ever had.

const MOST_SIBLINGS = 60;  // more are split into parts
const MOST_LEVELS = 24;    // of scopes in one name

class Group {
  constructor(label, path, kind) {
    this.label = label;
    this.path = path;
    this.kind = kind;  // "root", "scope" or "part"
    this.children = [];
    this.parent = null;
    this.depth = 0;
  }
}

class Leaf {
  constructor(name, label, key) {
    this.name = name;
    this.label = label;
    this.key = key;
    this.parent = null;
    this.depth = 0;
  }
}

class Tree {
  constructor(graph) {
    this.leaves = new Map();  // by name
    this.root = new Group("", "", "root");
    const scopes = new Map([["", this.root]]);
    for (const [name, key] of [...graph.order].sort((a, b) => a[1] - b[1])) {
      const words = texts[name].split("/");
      let scope = this.root;
      const levels = Math.min(words.length - 1, MOST_LEVELS);
      for (let i = 0, path = ""; i < levels; ++i) {
        path += words[i] + "/";
        if (!scopes.has(path)) {
          const inner = new Group(words[i], path, "scope");
          scope.children.push(inner);
          scopes.set(path, inner);
        }
        scope = scopes.get(path);
      }
      const leaf = new Leaf(name, words.slice(levels).join("/"), key);
      scope.children.push(leaf);
      this.leaves.set(name, leaf);
    }
    this.settle(this.root);
  }

  // Joins scopes that hold nothing but a scope, splits those that hold too much, sets parents.
  settle(group) {
    group.children = group.children.map((child) => {
      while (child instanceof Group && child.children.length === 1 && child.children[0] instanceof Group) {
        const inner = child.children[0];
        inner.label = child.label + "/" + inner.label;
        child = inner;
      }
      return child;
    });
    const n = group.children.length;
    if (n > MOST_SIBLINGS) {
      const levels = Math.ceil(Math.log(n) / Math.log(MOST_SIBLINGS) - 1e-9);
      this.split(group, Math.ceil(n ** (1 / levels)), 1, n);
    }
    for (const child of group.children) {
      child.parent = group;
      child.depth = group.depth + 1;
      if (child instanceof Group) this.settle(child);
    }
  }

  // Parts of about the same size, in the order from inputs to readers.
  split(group, fan, first, all) {
    const children = group.children;
    const size = Math.ceil(children.length / fan);
    if (size <= 1) return;
    group.children = [];
    for (let i = 0; i < children.length; i += size) {
      const held = children.slice(i, i + size);
      const from = first + i, to = from + held.length - 1;
      const part = new Group(`${number(from)}–${number(to)} of ${number(all)}`, `${group.path}#${from}-${to}`, "part");
      part.children = held;
      if (held.length > MOST_SIBLINGS) this.split(part, fan, from, all);
      group.children.push(part);
    }
  }
}

// The child of `above` that holds `item`.
function childOf(above, item) {
  while (item.parent !== above) item = item.parent;
  return item;
}

function commonGroup(a, b) {
  a = a.parent;
  b = b.parent;
  while (a !== b) {
    if (a.depth >= b.depth) a = a.parent; else b = b.parent;
  }
  return a;
}

function number(n) { return Math.round(n).toLocaleString("en-US"); }

function compact(n) {
  for (const [unit, size] of [["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (n >= size) return (n / size).toPrecision(3) + " " + unit;
  }
  return String(n);
}
