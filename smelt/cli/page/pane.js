// One side of the page: draws a view, pans and zooms.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes)) if (v !== undefined) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

function words(x, y, text, cls) {
  const e = svg("text", { x, y, class: cls });
  e.textContent = text;
  return e;
}

// From a share of the whole cost to one of eight colours: 0 below a thousandth, 7 the most.
function heat(cost, total) {
  if (cost <= 0 || total <= 0) return 0;
  return Math.max(0, Math.min(7, Math.floor(7.99 * (1 + Math.log10(cost / total) / 3))));
}

class Pane {
  // `act` has what a click asks for: toggle(group), select(item).
  constructor(root, act) {
    this.root = root;
    this.act = act;
    this.canvas = root.querySelector("svg");
    this.scene = svg("g", {});
    this.canvas.append(this.scene);
    this.places = new Map();  // by item: where its box is
    this.x = this.y = 0;
    this.zoom = 1;
    this.listen();
  }

  listen() {
    let held = null;
    this.canvas.addEventListener("pointerdown", (e) => {
      held = { x: e.clientX - this.x, y: e.clientY - this.y, startX: e.clientX, startY: e.clientY, moved: false };
    });
    window.addEventListener("pointermove", (e) => {
      if (!held) return;
      if (Math.abs(e.clientX - held.startX) + Math.abs(e.clientY - held.startY) > 4) held.moved = true;
      if (held.moved) this.moveTo(e.clientX - held.x, e.clientY - held.y, this.zoom);
    });
    window.addEventListener("pointerup", () => {
      this.dragged = held?.moved;
      held = null;
    });
    this.canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      this.zoomAt(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0015)), e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
    const press = (e) => {
      const box = e.target.closest("g.box");
      if (!box || this.dragged) return;
      const item = this.items[Number(box.dataset.item)];
      if (item instanceof Group) this.act.toggle(item); else this.act.select(item);
    };
    this.scene.addEventListener("click", press);
    this.scene.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      this.dragged = false;
      press(e);
    });
  }

  zoomAt(by, x, y) {
    const zoom = Math.max(0.03, Math.min(3, this.zoom * by));
    const real = zoom / this.zoom;
    this.moveTo(x - (x - this.x) * real, y - (y - this.y) * real, zoom);
  }

  moveTo(x, y, zoom) {
    Object.assign(this, { x, y, zoom });
    this.scene.setAttribute("transform", `translate(${x} ${y}) scale(${zoom})`);
  }

  // The whole, but never so small that nothing can be read.
  fit() {
    const box = this.canvas.getBoundingClientRect();
    const zoom = Math.max(0.7, Math.min(1.2, (box.width - 40) / this.width, (box.height - 40) / this.height));
    this.moveTo(Math.max((box.width - this.width * zoom) / 2, 20), 20, zoom);
  }

  center(item) {
    const place = this.places.get(item);
    if (!place) return;
    const box = this.canvas.getBoundingClientRect(), zoom = Math.max(this.zoom, 0.8);
    this.moveTo(box.width / 2 - (place.x + place.w / 2) * zoom, box.height / 2 - (place.y + Math.min(place.h, 200) / 2) * zoom, zoom);
  }

  // Whether the place's upper left corner is in the window.
  sees(place) {
    const box = this.canvas.getBoundingClientRect(), x = this.x + place.x * this.zoom, y = this.y + place.y * this.zoom;
    return x > -10 && y > -10 && x < box.width - 40 && y < box.height - 20;
  }

  // Keeps the item where it is on the screen while the rest changes around it, or brings it there.
  draw(view, open, selected, scale, held) {
    const old = held && this.places.get(held);
    this.view = view;
    this.scale = scale;
    this.selected = selected;
    this.open = open;
    this.items = [];
    this.places.clear();
    this.undrawn = 0;
    const layout = layOut(view, view.tree.root, open);
    this.width = Math.max(1, layout.w);
    this.height = Math.max(1, layout.h);
    const scene = document.createDocumentFragment();
    this.drawGroup(layout, 0, 0, scene);
    this.scene.replaceChildren(scene);
    const now = held && this.places.get(held);
    if (old && now) this.moveTo(this.x + (old.x - now.x) * this.zoom, this.y + (old.y - now.y) * this.zoom, this.zoom);
    if (now && !this.sees(now)) this.center(held);
  }

  drawGroup(layout, x, y, into) {
    this.undrawn += layout.undrawn;
    for (const l of layout.lines) into.append(this.line(l, x, y));
    for (const b of layout.boxes) into.append(this.box(b, x + b.x, y + b.y));
  }

  line(l, x, y) {
    const p = l.points.map((q) => ({ x: x + q.x, y: y + q.y })), last = p[p.length - 1];
    let d = `M${p[0].x} ${p[0].y}`;
    for (let i = 1; i < p.length - 1; ++i) {
      const end = i + 1 < p.length - 1 ? { x: (p[i].x + p[i + 1].x) / 2, y: (p[i].y + p[i + 1].y) / 2 } : last;
      d += `Q${p[i].x} ${p[i].y} ${end.x} ${end.y}`;
    }
    if (p.length === 2) d += `L${last.x} ${last.y}`;
    const cls = "line" + (l.control ? " control" : "") + (l.faint ? " faint" : "");
    return svg("path", { d, class: cls, "marker-end": l.faint ? undefined : "url(#arrow)", "stroke-width": l.faint ? 1 : Math.min(4, 1 + Math.log2(l.count) / 2) });
  }

  box(b, x, y) {
    const { item } = b, group = item instanceof Group;
    this.places.set(item, { x, y, w: b.w, h: b.h });
    const mark = group ? undefined : this.view.marks.get(item.name);
    const cost = group ? this.view.sums.get(item).cost : costOf(this.view.nodes.get(item.name));
    const e = svg("g", { class: `box ${group ? "group " + item.kind : "leaf"} ${mark ?? ""} ${item === this.selected ? "selected" : ""}`,
      tabindex: 0, role: "button", "data-item": this.items.push(item) - 1 });
    const say = document.createElementNS(SVG, "title");
    say.textContent = group ? shown(item.path) : shown(texts[item.name]);
    e.append(say);
    e.setAttribute("aria-label", say.textContent);
    if (b.inner) {
      e.setAttribute("aria-expanded", "true");
      e.append(svg("rect", { x, y, width: b.w, height: b.h, rx: 8, class: "frame" }),
        words(x + 10, y + 17, "− " + fitted(shown(item.label), 40), "title"));
      this.badges(e, item, x + b.w - 8, y + 17);
      const inside = svg("g", {});
      this.drawGroup(b.inner, x + (b.w - b.inner.w) / 2, y + HEADER, inside);
      const whole = svg("g", {});
      whole.append(e, inside);
      return whole;
    }
    const { title, under } = boxTexts(this.view, item);
    e.append(svg("rect", { x, y, width: b.w, height: b.h, rx: group ? 8 : 4, class: `body heat${heat(cost, this.scale)}` }),
      words(x + 9, y + 16, group ? "+ " + title : title, "title"), words(x + 9, y + 30, under, "under"));
    if (group) {
      e.setAttribute("aria-expanded", "false");
      this.badges(e, item, x + b.w - 8, y + 30);
    } else if (mark) {
      e.append(words(x + b.w - 14, y + 14, { added: "+", removed: "−", changed: "~" }[mark], "sign"));
    }
    const reach = this.view.reaches.get(item);
    if (reach?.in) e.append(svg("path", { d: `M${x + b.w / 2} ${y - 9}v8`, class: "stub" }));
    if (reach?.out) e.append(svg("path", { d: `M${x + b.w / 2} ${y + b.h + 1}v8`, class: "stub" }));
    return e;
  }

  // How many nodes of a group a pass touched, right-aligned.
  badges(e, group, x, y) {
    const sum = this.view.sums.get(group), parts = [];
    for (const [mark, sign] of [["added", "+"], ["removed", "−"], ["changed", "~"]]) {
      if (sum[mark] > 0) parts.push([mark, sign + number(sum[mark])]);
    }
    for (const [mark, text] of parts.reverse()) {
      e.append(words(x, y, text, "badge " + mark));
      x -= textWidth(text, 10) + 10;
    }
  }
}
