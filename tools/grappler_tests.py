#!/usr/bin/env python3
"""Where each of TensorFlow's tests of Grappler stands: grappler_tests.py [--markdown FILE] [--missing]

tests/grappler/upstream_tests.txt names them all; a case of tests/grappler/*.graph says with `upstream FILE TEST` which ones it restates, and so does a comment in a test of tests/*.cc and *.py. Fails when one names a test that there is not. --markdown writes the
table (docs/grappler_tests.md), --missing prints what no case restates."""
import argparse
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
cases = root / "tests/grappler"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown")
    parser.add_argument("--missing", action="store_true")
    args = parser.parse_args()
    tests, why = {}, {}
    for line in (cases / "upstream_tests.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        key, _, reason = line.partition(" | ")
        tests[tuple(key.split())] = []
        if reason.startswith("tests/"):
            if not (root / reason).is_file():
                sys.exit(f"upstream_tests.txt: {key}: there is no {reason}")
            tests[tuple(key.split())].append(reason)
        elif reason:
            why[tuple(key.split())] = reason
    wrong = []
    for path in sorted(cases.glob("*.graph")):
        case = ""
        for line in path.read_text().splitlines():
            if line.startswith("case "):
                case = line[5:]
            elif line.startswith("upstream "):
                key = tuple(line.split()[1:])
                if key not in tests:
                    wrong.append(f"{path.name}: case '{case}': TensorFlow has no test {' '.join(key)}")
                else:
                    tests[key].append(f"{path.stem}: {case}")
    for path in sorted([*(root / "tests").glob("*.cc"), *(root / "tests").glob("*.py")]):
        for key in re.findall(r"^(?://|#) upstream (\S+)\s+(?:// )?(\S+)$", path.read_text(), flags=re.M):
            if key not in tests:
                wrong.append(f"{path.name}: TensorFlow has no test {' '.join(key)}")
            else:
                tests[key].append(f"tests/{path.name}")
    restated = sum(bool(c) for c in tests.values())
    lines = ["# TensorFlow's tests of Grappler", "", "Written by tools/grappler_tests.py. A test is restated by a case of tests/grappler in a graph of our own, whose answer TensorFlow wrote, or by a test of tests/.", "",
             f"{restated} of {len(tests)} are restated, {len(why)} have no meaning here.", "", "| file | test | where it stands |", "|---|---|---|"]
    for (file, name), found in tests.items():
        lines.append(f"| {file} | {name} | {'; '.join(found) or why.get((file, name), 'not yet')} |")
    if args.markdown:
        pathlib.Path(args.markdown).write_text("\n".join(lines) + "\n")
    if args.missing:
        for key, found in tests.items():
            if not found and key not in why:
                print(*key)
    print("\n".join(wrong) or f"{restated} of {len(tests)} tests are restated, {len(why)} have no meaning here")
    sys.exit(bool(wrong))


main()
