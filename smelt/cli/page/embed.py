#!/usr/bin/env python3
"""Puts the page of smelt optimize --html together: embed.py OUT.cc page.html page.css LAYOUT_LIBRARY ITS_LICENCE SCRIPT.js... Run by the build.

page.html has a place for each part. The policy names the parts by their hashes, so that a browser runs and uses nothing else."""
import base64
import hashlib
import pathlib
import sys

target, page, style, library, licence, *scripts = sys.argv[1:]


def read(path):
    return pathlib.Path(path).read_text(encoding="utf8")


def hashed(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


terms = read(licence)
assert "*/" not in terms
# One function around all, so that no name meets the library's.
own = '"use strict";\n(() => {\n' + "\n".join(read(s) for s in scripts) + "})();\n"
parts = {"STYLE": read(style), "LIBRARY": f"/*\n{terms}*/\n" + read(library), "SCRIPT": own}
assert not any("</" + tag in text.lower() for text in parts.values() for tag in ("script", "style"))
html = read(page)
policy = f"default-src 'none'; script-src {hashed(parts['LIBRARY'])} {hashed(parts['SCRIPT'])}; style-src {hashed(parts['STYLE'])}; base-uri 'none'; form-action 'none'"
for name, text in {"POLICY": policy, **parts}.items():
    assert html.count("{{" + name + "}}") == 1
    html = html.replace("{{" + name + "}}", text)
before, after = html.split("{{DATA}}")


def literal(text):
    """Raw strings in pieces: compilers take no longer ones."""
    assert ')page"' not in text
    return "\n    ".join(f'R"page({text[i:i + 8000]})page"' for i in range(0, len(text), 8000))


pathlib.Path(target).write_text(
    '#include "smelt/cli/page/parts.h"\n\nnamespace smelt {\n\n'
    f"const absl::string_view kPageBeforeData =\n    {literal(before)};\nconst absl::string_view kPageAfterData =\n    {literal(after)};\n\n"
    "}  // namespace smelt\n", encoding="utf8")
