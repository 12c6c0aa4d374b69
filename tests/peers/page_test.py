#!/usr/bin/env python3
"""The page of smelt optimize --html in Chromium, and pictures by graphviz: page_test.py SMELT [--pictures DIR]. Ends with 'N passed, N failed'.

--pictures keeps screenshots, for who changes how the page looks."""
import pathlib
import shutil
import sys
import tempfile
import xml.etree.ElementTree

import page_graphs
from browser import Browser
from checks import call, check, finish

work = pathlib.Path(tempfile.mkdtemp(prefix="smelt_page_"))
pictures = pathlib.Path(sys.argv[sys.argv.index("--pictures") + 1]) if "--pictures" in sys.argv else None
models = pathlib.Path(__file__).resolve().parent.parent / "models"


def page_of(name, *args):
    code, out = call("optimize", *args, "--html", work / f"{name}.html")
    check(f"{name}: optimized", code == 0, out)
    return work / f"{name}.html"


def graph_page(name, text, *args):
    (work / f"{name}.graph").write_text(text)
    return page_of(name, "--graph_def", work / f"{name}.graph", "--feeds", "x", "--fetches", "y", *args)


def text(browser, css):
    return browser.run("return document.querySelector(arguments[0]).textContent", css)


def boxes(browser, side="right"):
    """The names of the boxes that are drawn: scopes end in '/'."""
    return browser.run("return [...document.querySelectorAll(`#${arguments[0]} g.box > title`)].map((t) => t.textContent)", side)


def press(browser, name, side="right"):
    """Clicks on the box of this name; the seconds until the page is done with it."""
    return browser.run("""const box = [...document.querySelectorAll(`#${arguments[0]} g.box`)].find((b) => b.querySelector("title").textContent === arguments[1]);
        const start = performance.now(); box.dispatchEvent(new MouseEvent("click", { bubbles: true })); return (performance.now() - start) / 1000;""", side, name)


def slide(browser, step):
    """Moves the slider as a hand does; the seconds until the page shows that pass."""
    browser.run("const s = document.getElementById('step'); s.value = arguments[0]; s.dispatchEvent(new Event('input'));", step)
    return browser.wait("return document.getElementById('passName').textContent.startsWith(arguments[0] + ' of')", str(step))


def step_of(browser, name):
    """Where the slider stands for the first pass of the name."""
    return browser.run("return [...document.querySelectorAll('#passes li')].findIndex((li) => li.textContent.includes(arguments[0]))", name)


def search(browser, words):
    browser.run("const s = document.getElementById('search'); s.value = ''; document.getElementById('found').replaceChildren();")
    browser.type("#search", words)
    browser.wait("return document.getElementById('foundCount')")


def quiet(browser, what):
    said = browser.log()
    check(f"{what}: nothing on the console", said == [], said)


def keep_picture(browser, name):
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
        browser.picture(pictures / f"{name}.png")


browser = Browser()
try:
    # ---- a network in blocks
    browser.open(graph_page("blocks", page_graphs.blocks()))
    check("counts", text(browser, "#leftCount").startswith("902 nodes") and text(browser, "#rightCount").startswith("504 nodes"),
          text(browser, "#leftCount") + text(browser, "#rightCount"))
    drawn = boxes(browser)
    check("it begins with what fits one look", "resnet/stage1/block2/" in drawn and len(drawn) < 60 and not any("Conv2D" in b for b in drawn), drawn)
    keep_picture(browser, "blocks")
    press(browser, "resnet/stage1/block2/")
    check("a scope opens", {"resnet/stage1/block2/1_conv/", "resnet/stage1/block2/add"} <= set(boxes(browser)) and "resnet/stage1/block2/1_conv/" in boxes(browser, "left"), boxes(browser))
    check("and is told of", text(browser, "#details h2") == "resnet/stage1/block2/" and "18 → 10" in text(browser, "#details"), text(browser, "#details"))
    press(browser, "resnet/stage1/block2/")
    check("and closes", "resnet/stage1/block2/add" not in boxes(browser), boxes(browser))
    shown = browser.run("""return [...document.querySelectorAll("#right g.box > rect")].every((r) => { const w = r.parentNode.querySelector(".title").getBoundingClientRect();
        const b = r.getBoundingClientRect(); return w.left >= b.left && w.right <= b.right + 1; })""")
    check("texts fit their boxes", shown)
    search(browser, "block30/2_conv/conv")
    check("one node is found", text(browser, "#foundCount") == "1 found", text(browser, "#found"))
    browser.click("#found button")
    name = "resnet/stage3/block30/2_conv/Conv2D"
    check("and shown where it is", text(browser, "#details h2").startswith(name) and name in boxes(browser) and name in boxes(browser, "left"), text(browser, "#details"))
    check("with attributes, inputs and passes", all(w in text(browser, "#details") for w in ('padding="SAME"', "resnet/stage3/block30/1_relu/Relu", "model_pruner")), text(browser, "#details"))
    seen = browser.run("""const b = [...document.querySelectorAll("#right g.selected")].at(-1).getBoundingClientRect(), s = document.querySelector("#right svg").getBoundingClientRect();
        return b.left >= s.left && b.right <= s.right && b.top >= s.top && b.bottom <= s.bottom;""")
    check("in the middle of the window", seen)
    keep_picture(browser, "found")
    slide(browser, 0)
    check("the slider goes back", text(browser, "#rightCount").startswith("902 nodes") and text(browser, "#removed") == "0", text(browser, "#rightCount"))
    slide(browser, 1)
    check("and to each pass", text(browser, "#rightCount").startswith("802 nodes") and text(browser, "#removed") == "100", text(browser, "#rightCount"))
    browser.run("const s = document.getElementById('base'); s.value = 'last'; s.dispatchEvent(new Event('change'))")
    slide(browser, step_of(browser, "common_subgraph_elimination"))
    check("or from the pass before", text(browser, "#leftCount").startswith("802 nodes") and text(browser, "#removed") == "298", text(browser, "#leftCount"))
    search(browser, "block9/1_conv/bias")
    browser.run("[...document.querySelectorAll('#found button')].find((b) => b.textContent.endsWith('/bias')).click()")
    check("a constant is drawn when it is asked for", "resnet/stage1/block9/1_conv/bias" in boxes(browser, "left") and browser.run("return document.getElementById('constants').checked"), boxes(browser, "left"))
    check("what a pass removes is marked", browser.run("""return [...document.querySelectorAll("#left g.leaf.removed > title")].some((t) => t.textContent === "resnet/stage1/block9/1_conv/bias")"""))
    search(browser, "no such node")
    check("nothing is found", text(browser, "#foundCount") == "0 found")
    quiet(browser, "blocks")

    # ---- rules, functions, texts that look like markup
    browser.open(graph_page("rules", """x = Placeholder {dtype=float, shape=[2]}
n = Neg(x) {T=float, "<b>note</b>"="</script><script>document.title='bad'</script>", _c="\\001"}
p = Neg(n) {T=float}
o = "</script><img src=x onerror=alert(1)>"(p) {T=float} outputs=1
q = Relu(o) {T=float}
y = Identity(q) {T=float}
"""))
    search(browser, "p")
    browser.run("[...document.querySelectorAll('#found button')].find((b) => b.textContent === 'p').click()")
    check("rules that rewrote a node", "arithmetic_optimizer/RemoveInvolution" in text(browser, "#details"), text(browser, "#details"))
    browser.run("[...document.querySelectorAll('#details button')].find((b) => b.textContent === 'n').click()")
    check("an input leads to its node, markup is text", text(browser, "#details h2").startswith("n") and "<b>note</b>=" in text(browser, "#details"), text(browser, "#details"))
    check("and runs nothing", browser.run("return document.title !== 'bad' && document.querySelectorAll('img, #details b').length === 0"))
    quiet(browser, "rules")
    browser.open(page_of("model", models / "loop"))
    count = browser.run("return document.getElementById('graph').options.length")
    check("functions can be chosen", count > 1, count)
    for i in range(count):
        browser.run("const g = document.getElementById('graph'); g.value = arguments[0]; g.dispatchEvent(new Event('change'))", i)
        check(f"graph {i} is drawn", len(boxes(browser, "left")) > 0 and "nodes" in text(browser, "#leftCount"))
    quiet(browser, "model")
    calls = "".join(f"func f{i}(a: float) -> (r: float) {{\n  c = f{i + 1}(a)\n  d = f{i + 1}(c)\n  return r=d\n}}\n" for i in range(3000))
    last = "func f3000(a: float) -> (r: float) {\n  c = Neg(a) {T=float}\n  return r=c\n}\n"
    browser.open(graph_page("chain", "x = Placeholder {dtype=float, shape=[2]}\ny = f0(x)\n" + calls + last, "--passes", "pruning"))
    check("a long chain of functions", text(browser, "#leftCount").startswith("2 nodes, cost 1.15 E") and browser.run("return document.getElementById('graph').options.length") == 3002,
          text(browser, "#leftCount"))
    check("costs that no number holds", browser.run("return [...document.querySelectorAll('#right rect.heat7')].length") == 1)
    browser.run("[...document.querySelectorAll('#right g.leaf')].find((b) => b.querySelector('title').textContent === 'y').dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    browser.run("[...document.querySelectorAll('#details button')].find((b) => b.textContent === 'f0').click()")
    check("a call leads to its function", browser.run("return document.getElementById('graph').selectedOptions[0].textContent") == "function f0" and "c" in boxes(browser), boxes(browser))
    quiet(browser, "chain")
    browser.open(graph_page("nothing", "x = Placeholder {dtype=float}\ny = Neg(x) {T=float}\n", "--passes", ""))
    check("a page without passes says so", "No pass ran" in text(browser, "#notice"), text(browser, "#notice"))
    quiet(browser, "nothing")

    # ---- 20,000 nodes, without scopes and all in one
    for what, scope in (("flat", ""), ("one_scope", "net/")):
        path = graph_page(what, page_graphs.many(scope=scope))
        check(f"{what}: a small page", path.stat().st_size < 4 << 20, path.stat().st_size)
        times = {"open": 0.0}
        browser.open(path)
        times["open"] = browser.run("const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd / 1000")
        check(f"{what}: counts", text(browser, "#leftCount").startswith("20,000 nodes"), text(browser, "#leftCount"))
        parts = [b for b in boxes(browser) if "#" in b]
        check(f"{what}: parts", 5 < len(parts) <= 60, parts)
        times["open a part"] = press(browser, parts[3])
        inner = [b for b in boxes(browser) if "#" in b and b not in parts]
        check(f"{what}: parts of parts", 5 < len(inner) <= 60, inner)
        times["open a part of it"] = press(browser, inner[3])
        check(f"{what}: nodes", any(b.startswith(f"{scope}n") and "#" not in b for b in boxes(browser)), boxes(browser))
        search(browser, "n7777")
        times["go to a node"] = browser.run("const t = performance.now(); document.querySelector('#found button').click(); return (performance.now() - t) / 1000")
        check(f"{what}: search", f"{scope}n7777" in boxes(browser) and text(browser, "#details h2").startswith(f"{scope}n7777"), text(browser, "#details h2"))
        times["slider"] = max(slide(browser, step) for step in (0, 4, 7, 11))
        search(browser, "mul")
        check(f"{what}: long lists are cut", "the first 100 shown" in text(browser, "#foundCount"), text(browser, "#foundCount"))
        keep_picture(browser, what)
        print(what, ", ".join(f"{k} {v:.2f} s" for k, v in times.items()), f"{path.stat().st_size / 1e6:.1f} MB")
        # Far more than it takes, for machines that do other work.
        check(f"{what}: quick", all(t < 20 for t in times.values()), times)
        quiet(browser, what)

    # ---- who opens part after part: those opened first close
    closed = "return document.getElementById('notice').textContent.startsWith('Closed')"
    for _ in range(100):
        if browser.run(closed):
            break
        browser.run("[...document.querySelectorAll('#right g.box[aria-expanded=false]')].at(-1).dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    drawn = [len(boxes(browser, side)) for side in ("left", "right")]
    check("at most so many boxes", browser.run(closed) and 600 < max(drawn) <= 1200, drawn)
    check("what was opened last is in sight", browser.run("""const b = document.querySelector("#right g.selected").getBoundingClientRect(), s = document.querySelector("#right svg").getBoundingClientRect();
        return b.left < s.right && b.right > s.left && b.top < s.bottom && b.bottom > s.top;"""))
    quiet(browser, "many boxes")
finally:
    browser.close()

# ---- dark
browser = Browser(dark=True)
try:
    browser.open(work / "blocks.html")
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    check("dark where that is asked for", ground == "rgb(21, 24, 28)", ground)
    keep_picture(browser, "dark")
    quiet(browser, "dark")
finally:
    browser.close()

# ---- pictures by graphviz itself
for name in ("blocks", "flat", "rules"):
    code, out = call("optimize", "--graph_def", work / f"{name}.graph", "--feeds", "x", "--fetches", "y", "--dump_dir", work / f"dump_{name}")
    drawn = sorted((work / f"dump_{name}").glob("*.svg"))
    check(f"{name}: pictures", code == 0 and drawn and len(drawn) == len(list((work / f"dump_{name}").glob("*.graph"))), out)
    for path in drawn:
        titles = [e.text for e in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        check(f"{path.name}: legible", 1 < len(titles) < 1000 and "nodes" in titles[0], titles[:3])
shutil.rmtree(work)
finish()
