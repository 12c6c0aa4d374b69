#!/usr/bin/env python3
"""Are the cases there that docs/lite_upstream_tests.md names? lite_upstream_tests.py

A row of the page is `| test of TensorFlow | where it stands |`: cases of tests/lite as `FILE: CASE`, a file of tests/, or a reason. A heading `## FILE: N` says how many rows follow. Fails where a case or a file that a row names
is not there, where a name stands twice, where there are other than N rows, and where a case holds nothing but a text that does not parse."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent


def main():
    cases, wrong = set(), []
    for path in sorted((root / "tests/lite").glob("*.case")):
        case = ""
        for line in path.read_text().splitlines():
            if line.startswith("case "):
                case = line[5:]
                cases.add(f"{path.stem}: {case}")
            elif re.match(r"INVALID_ARGUMENT: \d+:\d+: ", line) and not path.stem.startswith("rules"):
                wrong.append(f"{path.name}: case '{case}': its graph does not parse")
    page = (root / "docs/lite_upstream_tests.md").read_text()
    counts = {"case": 0, "reason": 0}
    for name, wanted, rows in re.findall(r"^## (\S+\.mlir): (\d+)\n((?:(?!## ).*\n)*)", page, flags=re.M):
        found = re.findall(r"^\| (\w+) \| (.*) \|$", rows, flags=re.M)
        found = [row for row in found if row[0] != "test"]
        if len(found) != int(wanted):
            wrong.append(f"{name}: {len(found)} rows, not {wanted}")
        if len({test for test, _ in found}) != len(found):
            wrong.append(f"{name}: a test stands twice")
        for test, where in found:
            counts["reason" if where.startswith("-") else "case"] += 1
            if where.startswith("-"):
                continue
            for place in where.split("; "):
                if place not in cases and not (place.startswith("tests/") and (root / place).is_file()):
                    wrong.append(f"{name} {test}: there is no '{place}'")
    print("\n".join(wrong) or f"{counts['case']} tests have a case, {counts['reason']} have no meaning here")
    sys.exit(bool(wrong))


main()
