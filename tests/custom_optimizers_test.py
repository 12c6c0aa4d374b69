#!/usr/bin/env python3
"""Optimizers beside the built in ones: custom_optimizers_test.py SMELT LIBRARY. Ends with 'N passed, N failed'.

tests/optimizer_library is the library, compiled against the interface alone; tests/custom_optimizer_test.cc has what needs an optimizer in the program."""
import json
import os
import sys

from program import call, check, finish, models, work

library = os.path.abspath(sys.argv[2])
ran = set()
GRAPH = """x = Placeholder {dtype=float, shape=[?,3]}
c = Const {value=float[]{1}}
n = Neg(x) {T=float, device=DEVICE}
d = Exp(c) {T=float}
k = Mul(n, d) {T=float}
t = twice(k)
y = Identity(t) {T=float}

func twice(a: float) -> (b: float) {
  m = Neg(a) {T=float, device=DEVICE}
  p = Add(m, m) {T=float}
  q = Sqrt(p) {T=float}
  return b=q
}
"""


def source(device):
    path = work / "in.graph"
    lines = [line.replace(", device=DEVICE}", "} " + f'@"{device}"' if device else "}") for line in GRAPH.splitlines()]
    path.write_text("\n".join(lines) + "\n")
    return path


def optimize(*args, config="", device="/device:CPU:0", asked="", loaded=library):
    (work / "config").write_text("min_graph_nodes: -1 function_optimization: OFF meta_optimizer_iterations: ONE " + config)
    libraries = ["--optimizer_library", loaded] if loaded else []
    code, out, err = call("optimize", "--graph_def", source(device), work / "out.graph", "--feeds", "x", "--fetches", "y", "--config", work / "config", *libraries, *args,
                          env={**os.environ, "SMELT_EXAMPLE_OPTIMIZER": asked})
    return code, out, err, (work / "out.graph").read_text() if code == 0 else ""


# ---- a library's optimizer
# upstream meta_optimizer_test RunsPluginOptimizer
code, out, err, graph = optimize()
check("runs on the graph and on its functions", code == 0 and graph.count("= Abs(") == 2 and "Neg" not in graph and out.count("PluggableGraphOptimizer") == 2, out + err + graph)
check("and has a built in one turned off", "constant_folding" not in out and "d = Exp(c)" in graph, out)
order = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and "nodes" not in line]
check("last", order[order.index("PluggableGraphOptimizer") - 1] == "memory_optimizer", order)
code, out, err, graph = optimize(device="/device:GPU:0")
check("not for another device", code == 0 and graph.count("= Neg(") == 2 and "constant_folding" in out and "PluggableGraphOptimizer" not in out, out + err + graph)
code, out, err, graph = optimize(device="")
check("nor where no node says", code == 0 and graph.count("= Neg(") == 2, graph)
code, out, err, graph = optimize(config="use_plugin_optimizers: OFF")
check("nor where it is turned off", code == 0 and graph.count("= Neg(") == 2 and "constant_folding" in out, out + graph)
code, out, err, graph = optimize("--passes", "constfold,dependency")
check("with optimizers by name, but those that it turns off", code == 0 and graph.count("= Abs(") == 2 and "constant_folding" not in out and "no optimizer 'constfold'" in err, out + err)
code, out, err, graph = optimize(asked="tell")
check("is told what stays", "preserve: x y\n" in out and "fetch: y\n" in out and "fetch: b_RetVal\n" in out, out)
check("names that do not fit", "too small: 3 Not enough storage to hold the requested list of nodes" in out, out)
check("is told types and shapes", "y: 1 inputs, 1 outputs, 0 of a node that there is not, properties 8 1 18" in out, out)
check("a buffer that is full", "full: 3 Passing non-empty TF_Buffer is invalid." in out, out)
check("is told definitions", "Neg: 0 known" in out and "twice: 0 known" in out and "NoSuchOp: 5 Op type not registered 'NoSuchOp' in binary running on" in out, out)

# Models go through another program's bytes, and answer as recorded.
for log in sorted(models.glob("*.tfrecord")):
    code, out, err = call("optimize", models / log.stem, work / log.stem, "--optimizer_library", library, env={**os.environ, "SMELT_EXAMPLE_OPTIMIZER": "same"})
    check(f"{log.stem}: optimized", code == 0 and "undone" not in out, out + err)
    ran.update(line.split()[-1] for line in out.splitlines() if "PluggableGraphOptimizer" in line)
    code, out, err = call("replay", work / log.stem, "--log", log)
    check(f"{log.stem}: answers as recorded", code == 0, out + err)
check("it ran on some", ran == {"changed"}, ran)

# ---- one that misbehaves is undone and named
for asked, why in (("fail", "not today"), ("empty", "node 'x' is gone, and must stay"), ("garbage", "Unparseable tensorflow.GraphDef proto")):
    code, out, err, graph = optimize("--json", asked=asked)
    passes = [p for g in json.loads(out)["graphs"] for p in g["passes"] if p["pass"] == "PluggableGraphOptimizer"]
    undone = passes and all(p["outcome"] == "undone" for p in passes) and passes[0]["why_undone"] == why
    check(f"{asked}: undone", code == 0 and undone and graph.count("= Neg(") == 2, out + err)
    code, out, err, graph = optimize(asked=asked, config="fail_on_optimizer_errors: true")
    check(f"{asked}: or an error", code == 1 and f"{why} (in pass PluggableGraphOptimizer)" in err, err)
code, out, err, graph = optimize(asked="nothing")
check("one that did nothing", code == 0 and graph.count("= Neg(") == 2 and "undone" not in out and "unchanged" in out, out)

# ---- libraries that are none
for asked, text in (("no size", "FAILED_PRECONDITION: optimizer library " + library + ": struct_size field in TP_OptimizerRegistrationParams must be set to TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE."),
                    ("no device", "'device_type' field in TP_OptimizerRegistrationParams must be set."), ("no function", "'optimize_func' field in TP_Optimizer must be set.")):
    code, out, err, graph = optimize(asked=asked)
    check(f"{asked}: refused", code == 1 and text in err, err)
code, out, err, graph = optimize("--optimizer_library", library)
check("twice", code == 1 and "ALREADY_EXISTS" in err and "PluginGraphOptimizer with device_type CPU is registered twice." in err, err)
code, out, err, graph = optimize(loaded=work / "no_such.so")
check("no library", code == 1 and "NOT_FOUND: cannot load optimizer library" in err, err)

# ---- by name
code, out, err, graph = optimize(loaded=None, config='custom_optimizers { name: "no_such" } custom_optimizers { name: "constfold" }', device="")
check("an unknown one is named and left out, a built in one runs", code == 0 and "no optimizer 'no_such'" in err and "nothing new" in out, out + err)
code, out, err, graph = optimize(loaded=None, config='custom_optimizers { name: "batch_op_rewrite" }')
check("batch_op_rewrite without its parameter", code == 1 and "INTERNAL: batch_op_rewrite_config param must be set in the rewriter config with a serialized/encoded BatchOpRewriteConfig." in err, err)
for name, config, text in (("no base64", "%", "Failed to unencode batch_op_rewrite_config from params."), ("no message", "/w==", "Failed to parse batch_op_rewrite_config from params.")):
    code, out, err, graph = optimize(loaded=None, config=f'custom_optimizers {{ name: "batch_op_rewrite" parameter_map {{ key: "batch_op_rewrite_config" value {{ s: "{config}" }} }} }}')
    check(f"batch_op_rewrite: {name}", code == 1 and text in err, err)

# Options of batch ops that contradict each other; tests/grappler/batch_ops.graph has those that do not.
# upstream batch_op_rewriter_test InvalidArgumentForAdaptiveBatchScheduler
# upstream batch_op_rewriter_test UpdateModelSchedulerOptions
# upstream batch_op_rewriter_test UpdateAdaptiveSharedBatchSchedulerAndNumBatchThreads
for config, text in (("EioKE21vZGVsX3dpdGhfb3ZlcnJpZGUSEzoRIgMI6AcSAggICgIIEBoCCCA=", "Requires min_inflight_batches <= initial_inflight_batches and initial_inflight_batches <= max_inflight_batches; Got {min_inflight_batches : 16, initial_inflight_batches : 8, max_inflight_batches : 32}."),
                     ("CigKE21vZGVsX3dpdGhfb3ZlcnJpZGUSESIDCOgHEgIIEAoCCAgaAggg", "model_scheduler_options is deprecated."),
                     ("IAESGQoTbW9kZWxfd2l0aF9vdmVycmlkZRICCAI=", "Unable to enable adapative shared batching because it requires num_batch_threads=0")):
    text_config = ('graph_options { rewrite_options { min_graph_nodes: -1 fail_on_optimizer_errors: true custom_optimizers { name: "batch_op_rewrite" parameter_map { key: "batch_op_rewrite_config" value { s: "'
                   + config + '" } } } } } experimental { session_metadata { name: "model_with_override" } }')
    (work / "config").write_text(text_config)
    code, out, err = call("optimize", "--graph_def", source(""), "--fetches", "y", "--config", work / "config")
    check(f"batch_op_rewrite: {text[:30]}", code == 1 and f"INVALID_ARGUMENT: {text}" in err, err)

finish()
