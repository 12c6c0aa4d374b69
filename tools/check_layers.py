#!/usr/bin/env python3
"""Holds the layer law: includes of each folder against the DEPS lines of CMakeLists.txt, those of each room inside of a
folder against smelt/rooms.txt, and who may see which library."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
problems = []

# header pattern -> where it may be included (path prefixes under smelt/)
only = {
    r"\.pb\.h[>\"]": ["wire/"],
    r"google/protobuf/": ["wire/"],
    r"grpcpp/": ["rpc/"],
    r"<dnnl": ["kernels/onednn/", "compile/"],
    r"<CLI/": ["cli/"],
    r"<omp\.h>": ["base/parallel.cc"],
    r"<(unsupported/)?Eigen/": ["kernels/linalg/", "kernels/elementwise/special/"],
    r"<re2/": ["kernels/text/regex.cc", "convert/options.cc", "convert/quantize/", "convert/bfloat16/", "convert/search/", "lite/quantize/float_layers.cc"],
    r"<unicode/": ["kernels/text/icu.cc"],
    r"<j(peglib|error)\.h>": ["kernels/image/jpeg_"],
    r"<png\.h>": ["kernels/image/png.cc"],
    r"<gif_lib\.h>": ["kernels/image/gif.cc"],
    r"<webp/": ["kernels/image/webp.cc"],
    r"<zlib\.h>": ["io/inflate.cc", "kernels/image/png.cc"],
    r"<archive": ["io/archive.cc"],
    r"<isa-l": ["io/crc32c.cc", "wire/numpy/npz.cc"],
    r"<snappy": ["wire/bundle/index_table.cc"],
    r"<flatbuffers/|tflite(_bfbs)?_generated\.h": ["wire/tflite/", "lite/common/flex"],
    r"<farmhash\.h>": ["base/hash.cc"],
    r"<nettle/": ["io/sha256.cc"],
    r"[<\"]rapidjson/": ["serve/", "convert/certificate.cc", "io/json_writer.h", "io/utf8.cc"],
}

# header pattern -> the library's target in cmake/libraries.cmake, which a folder names behind LIBS
libraries = {
    r"<re2/": "re2",
    r"<j(peglib|error)\.h>": "jpeg",
    r"<png\.h>": "png",
    r"<gif_lib\.h>": "gif",
    r"<webp/": "webp",
    r"<zlib\.h>": "zlib",
    r"<archive": "archive",
    r"<isa-l": "isal",
    r"<snappy": "snappy",
    r"<flatbuffers/": "flatbuffers",
    r"<farmhash\.h>": "farmhash",
    r"<nettle/": "nettle",
    r"[<\"]rapidjson/": "rapidjson",
    r"<CLI/": "cli11",
    r"<dnnl": "dnnl",
    r"\.pb\.h[>\"]": "protos",
}

# ---- the tree: every file below smelt/ with its includes
files = {}  # "kernels/nn/pool.cc" -> [(line, spelled, target)]
for path in sorted((root / "smelt").rglob("*")):
    if path.suffix in (".h", ".cc", ".cpp", ".inc"):
        lines = path.read_text(errors="replace").splitlines()
        found = [(n, re.match(r'\s*#\s*include\s+([<"]([^>"]+)[>"])', line)) for n, line in enumerate(lines, 1)]
        files[path.relative_to(root / "smelt").as_posix()] = [(n, m[1], m[2]) for n, m in found if m]


def own(target):
    """The path below smelt/ of an include of smelt's own, else None."""
    return target[len("smelt/"):] if target.startswith("smelt/") else None


# ---- folders
deps, libs = {}, {}
for name, rest in re.findall(r"smelt_folder\((\w+)\s+DEPS\s*([^)]*)\)", (root / "CMakeLists.txt").read_text()):
    own_deps, _, own_libs = rest.partition("LIBS")
    deps[name], libs[name] = set(own_deps.split()), {lib.removeprefix("smelt_") for lib in own_libs.split()}
# Folder order is the order of the lines: a folder may only name those above it.
order = list(deps)
for name in order:
    for d in deps[name] - {"base"}:
        if d not in order[: order.index(name)]:
            problems.append(f"CMakeLists.txt: {name} may not depend on {d}, which stands below it")

# ---- rooms: "kernels/nn" -> what it may include of its folder; the folder itself is where its headers stand
rooms, opened, floors = {}, set(), set()
for n, line in enumerate((root / "smelt/rooms.txt").read_text().splitlines(), 1):
    words = line.split("#")[0].split()
    if not words:
        continue
    room, folder = words[0], words[0].split("/")[0]
    if "open" in words:
        opened.add(room)
    if "floor" in words:
        floors.add(room)
    rights = {f"{folder}/{w}" for w in words[1:] if w not in ("open", "floor")}
    problems += [f"smelt/rooms.txt:{n}: {room} may not include {r}, which stands below it" for r in rights - set(rooms)]
    if room in rooms:
        problems.append(f"smelt/rooms.txt:{n}: {room} stands twice")
    rooms[room] = rights
places = {room: i for i, room in enumerate(rooms)}
machinery = {room[: -len("/ops")] for room in rooms if room.endswith("/ops") and room[: -len("/ops")] in rooms}


def room_of(path):
    """The innermost room of a file; a folder's own files are in the room of the folder's name."""
    folder = path.rsplit("/", 1)[0]
    while "/" in folder and folder not in rooms:
        folder = folder.rsplit("/", 1)[0]
    return folder


def check_room(here, where, target):
    """Checks an include inside of one folder. Returns the line's right in smelt/rooms.txt that allows it, (room, other), or None."""
    room, other, folder = room_of(here), room_of(target), here.split("/")[0]
    if room == other:
        return None
    if room == folder:
        # The sources of a folder tie its rooms together, unless they are a floor too; its headers stand at their place.
        if (here.endswith(".h") or folder in floors) and places[other] > places.get(folder, -1):
            problems.append(f"{where}: {folder}/ itself may not include {target}")
    elif other in opened:
        return None
    elif other == folder:
        if places[room] < places.get(folder, -1):
            problems.append(f"{where}: {room} stands below the headers of {folder}/")
    elif other in rooms[room]:
        return room, other
    else:
        problems.append(f"{where}: the room {room} may not include {target} (smelt/rooms.txt)")
    return None


# ---- every include
used_rooms, used_deps, used_libs = set(), set(), set()
for here, includes in files.items():
    folder = here.split("/")[0]
    inner = here.split("/")[1] if here.count("/") > 1 else None
    if inner and f"{folder}/{inner}" not in rooms:
        problems.append(f"smelt/{here}: the room {folder}/{inner} is not in smelt/rooms.txt")
        continue
    for number, spelled, target in includes:
        where = f"smelt/{here}:{number}"
        mine = own(target)
        if mine and mine.split("/")[0] == folder:
            used_rooms.add(check_room(here, where, mine))
        elif mine:
            other = mine.split("/")[0]
            used_deps.add((folder, other))
            if other not in deps.get(folder, set()) | {"base"}:
                problems.append(f"{where}: {folder} may not include {target}")
        for pattern, allowed in only.items():
            if re.search(pattern, spelled) and not any(here.startswith(a) for a in allowed):
                problems.append(f"{where}: {target} may only be included in {', '.join(allowed)}")
        used_libs |= {(folder, lib) for pattern, lib in libraries.items() if re.search(pattern, spelled)}
        if here.endswith(".h") and re.match(r"(unsupported/)?Eigen/", target):
            problems.append(f"{where}: no header includes Eigen")

# ---- one header knows the processor; what is written for one stands in files of its own
written_for = re.compile(r"<(\w*intrin|cpuid|arm_\w+|asm/hwcap|sys/auxv)\.h>|__x86_64__|__aarch64__|__(SSE|AVX|ARM)\w*|__builtin_(ia32|cpu)_|_mm\d*_\w+\(")
for here in files:
    if here not in ("base/processor.h", "kernels/isa/vector.inc") and not re.search(r"\.(x86|aarch64)\.(h|cc)$", here):
        for n, line in enumerate((root / "smelt" / here).read_text(errors="replace").splitlines(), 1):
            if written_for.search(line.split("//")[0]):
                problems.append(f"smelt/{here}:{n}: what is written for a processor stands in base/processor.h, *.x86.* and *.aarch64.*")

# ---- rights that nobody uses, libraries that are not linked
for folder in deps:
    problems += [f"CMakeLists.txt: {folder} includes nothing of {d}" for d in sorted(deps[folder]) if (folder, d) not in used_deps]
    problems += [f"CMakeLists.txt: {folder} includes nothing of {lib}" for lib in sorted(libs[folder]) if (folder, lib) not in used_libs]
for folder, lib in sorted(used_libs):
    if lib not in libs[folder]:
        problems.append(f"CMakeLists.txt: {folder} includes headers of {lib} and does not link it")
for room, rights in rooms.items():
    problems += [f"smelt/rooms.txt: {room} includes nothing of {r}" for r in sorted(rights) if (room, r) not in used_rooms]
    if not (root / "smelt" / room).is_dir():
        problems.append(f"smelt/rooms.txt: there is no room {room}")


# ---- machinery, with all that it includes, knows no op
def first_path(start, wanted):
    """The shortest chain of includes from a file to one of the wanted ones, or None."""
    seen, line = {start}, [[start]]
    while line:
        chain = line.pop(0)
        for _, _, target in files.get(chain[-1], []):
            mine = own(target)
            if mine in wanted:
                return chain + [mine]
            if mine and mine not in seen:
                seen.add(mine)
                line.append(chain + [mine])
    return None


for here in files:
    if room_of(here) in machinery:
        chain = first_path(here, {"kernels/kernel.h", "kernels/op_context.h"})
        if chain:
            problems.append(f"smelt/{here}: machinery knows {chain[-1]}, through {' > '.join(chain)}")

# ---- what runs a stranger's model touches files through FileSystem, which the Session is given
file_functions = re.compile(r"(^|[^.>:\w])((std::)?fopen|::open|ReadFile|MapFile|WriteFileAtomically|AppendToFile|MakeFile|RemoveFile|MakeDirs|MatchingPaths"
                            r"|ListDir)\(|\b[io]?fstream\b|std::filesystem")
for here in files:
    if here.split("/")[0] in ("kernels", "analysis", "optimize", "stablehlo", "runtime"):
        for n, line in enumerate((root / "smelt" / here).read_text(errors="replace").splitlines(), 1):
            if file_functions.search(line.split("//")[0]):
                problems.append(f"smelt/{here}:{n}: files are reached through io/file_system.h here")

print("\n".join(problems) if problems else f"layers: {len(order)} folders, {len(rooms)} rooms, ok")
sys.exit(1 if problems else 0)
