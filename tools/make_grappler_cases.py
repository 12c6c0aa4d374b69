#!/usr/bin/env python3
"""Asks TensorFlow's Grappler for the answers of the cases in tests/grappler: make_grappler_cases.py SMELT FILE.graph... [--case NAME] [--print]

Of each case (tests/grappler_runner.cc has the form) `in`, `optimizers`, `config`, `session`, `feeds`, `fetches`, `init`, `keep`, `device` and `env` are read; what TensorFlow makes of it becomes `out` (`same` where nothing changed),
or `error` where it refuses. The section `smelt`, where smelt means to do otherwise, and its reason stay. --print shows the answers and writes nothing. Needs tensorflow."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
from google.protobuf import text_format
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2, device_properties_pb2, meta_graph_pb2
from tensorflow.python.grappler import cluster as clusters, tf_optimizer

SECTIONS = ("in", "out", "same", "smelt", "error")


def parse(text, named=SECTIONS):
    """[(lines before any section, {section: lines})] of a file."""
    cases = []
    for block in re.split(r"^-{3,}\n", text, flags=re.M):
        if not block.strip():
            continue
        head, sections, current = [], {}, None
        for line in block.splitlines():
            word = line.split(" ")[0]
            if word in named and (line == word or word == "error"):
                current = sections.setdefault(word, [] if word != "error" else [line])
            elif current is None:
                head.append(line)
            else:
                current.append(line)
        cases.append((head, sections))
    return cases


def field(head, name):
    return [line[len(name) + 1:] for line in head if line.startswith(name + " ")]


def words(head, name):
    return " ".join(field(head, name)).split()


def cluster(head, timeline=False):
    """The virtual cluster that the lines `device` describe; None without one: this machine."""
    devices = []
    for line in field(head, "device"):
        name, kind, *pairs = line.split()
        device = device_properties_pb2.NamedDevice(name=name)
        device.properties.type = kind
        for key, value in (pair.split("=", 1) for pair in pairs):
            if key in ("frequency", "num_cores", "memory_size", "bandwidth"):
                setattr(device.properties, key, int(value))
            else:
                device.properties.environment[key] = value
        devices.append(device)
    return clusters.Cluster(devices=devices, disable_timeline=not timeline) if devices else None


class Asker:
    def __init__(self, smelt, work):
        self.smelt, self.work = smelt, pathlib.Path(work)

    def turn(self, source, target):
        subprocess.run([self.smelt, "optimize", "--graph_def", str(source), str(target), "--passes", ""], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ask(self, head, lines):
        """(the text of TensorFlow's graph, its error)."""
        (self.work / "in.graph").write_text("\n".join(lines) + "\n")
        self.turn(self.work / "in.graph", self.work / "in.pb")
        meta = meta_graph_pb2.MetaGraphDef()
        meta.graph_def.ParseFromString((self.work / "in.pb").read_bytes())
        meta.graph_def.versions.producer = 2000
        for name in words(head, "fetches"):
            meta.collection_def["train_op"].node_list.value.append(name)
        signature = meta.signature_def["asked"]
        for key in ("feeds", "fetches"):
            for name in words(head, key):
                info = (signature.inputs if key == "feeds" else signature.outputs)[name]
                info.name = name if ":" in name else name + ":0"
                attrs = next(n for n in meta.graph_def.node if n.name == name.split(":")[0]).attr
                info.dtype = next((attrs[k].type for k in ("dtype", "T", "DstT", "out_type") if k in attrs), tf.bool.as_datatype_enum)
                if "shape" in attrs:
                    info.tensor_shape.CopyFrom(attrs["shape"].shape)
        if not words(head, "feeds"):
            del meta.signature_def["asked"]
        for name in words(head, "init"):
            meta.collection_def["table_initializer"].node_list.value.append(name)
        for name in words(head, "keep"):
            meta.collection_def["local_init_op"].node_list.value.append(name)
        config = config_pb2.ConfigProto()
        rewriter = config.graph_options.rewrite_options
        rewriter.min_graph_nodes = -1
        rewriter.disable_tfg_optimizer = True
        rewriter.fail_on_optimizer_errors = True
        if words(head, "optimizers"):
            rewriter.optimizers.extend(words(head, "optimizers"))
            rewriter.meta_optimizer_iterations = rewriter.ONE
        text_format.Merge(" ".join(field(head, "config")), rewriter)
        text_format.Merge(" ".join(field(head, "session")), config)
        machine = cluster(head)
        try:
            out = tf_optimizer.OptimizeGraph(config, meta, graph_id="item", cluster=machine)
        except (tf.errors.OpError, RuntimeError, ValueError) as e:
            return None, str(e).splitlines()[0]
        finally:
            if machine is not None:
                machine.Shutdown()
        (self.work / "out.pb").write_bytes(graph_pb2.GraphDef.SerializeToString(out))
        try:
            self.turn(self.work / "out.pb", self.work / "out.graph")
        except subprocess.CalledProcessError as e:
            return None, "TensorFlow's graph is none: " + e.stderr.decode().splitlines()[0].replace(str(self.work) + "/", "")
        return (self.work / "out.graph").read_text(), None


def ask_in(environment, args, path, cases):
    """Asks for all `cases` in one process of its own, as TensorFlow reads parts of its environment once."""
    with tempfile.TemporaryDirectory() as work:
        part = pathlib.Path(work) / path.name
        part.write_text("----\n".join(shown([line for line in head if not line.startswith("env ")], sections) for head, sections in cases))
        subprocess.run([sys.executable, __file__, args.smelt, str(part)], check=True, env={**os.environ, **dict(pair.split("=", 1) for pair in environment)})
        for (_, sections), (_, answered) in zip(cases, parse(part.read_text())):
            sections.clear()
            sections.update(answered)


def shown(head, sections):
    lines = list(head)
    for name in SECTIONS:
        if name == "error" and name in sections:
            lines += sections[name]
        elif name in sections:
            lines += [name] + sections[name]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("smelt")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--case")
    parser.add_argument("--print", action="store_true", dest="only_print")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        asker = Asker(os.path.abspath(args.smelt), work)
        for path in map(pathlib.Path, args.files):
            cases = parse(path.read_text())
            asked = [case for case in cases if args.case in (None, field(case[0], "case")[0]) and not field(case[0], "by_hand")]
            environments = {}
            for number, case in enumerate(asked):
                # TensorFlow counts the runs of this optimizer, and names nodes by the count.
                alone = number if len(asked) > 1 and "scoped_allocator" in " ".join(case[0]) else None
                environments.setdefault((tuple(field(case[0], "env")), alone), []).append(case)
            answered = set()
            for (environment, alone), together in environments.items():
                if environment or alone is not None:
                    ask_in(environment, args, path, together)
                    answered.update(id(sections) for _, sections in together)
            for head, sections in asked:
                name = field(head, "case")[0]
                if id(sections) in answered:
                    if args.only_print:
                        print(shown(head, sections))
                    continue
                text, error = asker.ask(head, sections["in"])
                for old in ("out", "same", "error"):
                    sections.pop(old, None)
                if error is not None:
                    sections["error"] = [f"error {error}"]
                elif text.splitlines() == sections["in"]:
                    sections["same"] = []
                else:
                    sections["out"] = text.splitlines()
                if args.only_print:
                    print(f"==== {name}\n{error if error is not None else text}")
            if not args.only_print:
                path.write_text("----\n".join(shown(*case) for case in cases))


if __name__ == "__main__":
    main()
