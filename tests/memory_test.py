#!/usr/bin/env python3
"""What a model or an input makes the program allocate ends as an error, not as an abort: memory_test.py SMELT. Ends with
'N passed, N failed'."""
import resource

from program import call, check, finish, int_const, models, node, string_const, work

GB = 1 << 30


def run(text, *flags, **more):
    path = work / "graph.pbtxt"
    path.write_text(text)
    return call("run", "--graph_def", path, "--fetches", "out:0", *flags, **more)


def peak(before):
    """The largest child so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def refused(name, code, out, err):
    check(name, code == 1 and "error: RESOURCE_EXHAUSTED" in err, (code, out[:300], err[-600:]))


# Strings that double: 2^32 bytes in the end.
doubling = string_const("s0", "x" * 1000)
for i in range(32):
    doubling += node(f"s{i + 1}", "StringJoin", f"s{i}", f"s{i}", N="i: 2")
doubling += node("out", "Identity", "s32", T="type: DT_STRING")
SIZES = {
    "joined strings": doubling,
    "a fill of strings": int_const("dims", 1 << 27, shape=1) + string_const("value", "a string beyond the small ones") + node("out", "Fill", "dims", "value", T="type: DT_STRING"),
    "tiled strings": string_const("s", "x" * 1000000, shape=1) + int_const("n", 100000, shape=1) + node("out", "Tile", "s", "n", T="type: DT_STRING"),
    "numbers as text": int_const("dims", 1 << 28, shape=1) + int_const("value", 1) + node("f", "Fill", "dims", "value", T="type: DT_INT32")
    + node("out", "AsString", "f", T="type: DT_INT32"),
    "a constant without values": node("c", "Const", dtype="type: DT_COMPLEX128", value=f"tensor {{ dtype: DT_COMPLEX128 tensor_shape {{ dim {{ size: {1 << 28} }} }} }}")
    + node("out", "Identity", "c", T="type: DT_COMPLEX128"),
}
grown = int_const("dims", 1 << 20, shape=1) + int_const("one", 1) + int_const("axis", 0) + node("c0", "Fill", "dims", "one", T="type: DT_INT32")
for i in range(14):
    grown += node(f"c{i + 1}", "ConcatV2", f"c{i}", f"c{i}", "axis", N="i: 2", T="type: DT_INT32")
SIZES["numbers that double"] = grown + node("out", "Identity", "c14", T="type: DT_INT32")
# A loop that stacks a tensor at every step, for ever.
SIZES["a stack that grows"] = (
    int_const("zero", 0) + int_const("size", -1) + int_const("dims", 1 << 18, shape=1) + int_const("one", 1)
    + node("big", "Fill", "dims", "one", T="type: DT_INT32") + node("stack", "StackV2", "size", elem_type="type: DT_INT32")
    + node("i", "Enter", "zero", T="type: DT_INT32", frame_name='s: "f"') + node("m", "Merge", "i", "n", T="type: DT_INT32", N="i: 2")
    + node("one_in", "Enter", "one", T="type: DT_INT32", frame_name='s: "f"', is_constant="b: true")
    + node("big_in", "Enter", "big", T="type: DT_INT32", frame_name='s: "f"', is_constant="b: true")
    + node("stack_in", "Enter", "stack", T="type: DT_RESOURCE", frame_name='s: "f"', is_constant="b: true")
    + node("less", "GreaterEqual", "m", "m", T="type: DT_INT32") + node("go", "LoopCond", "less")
    + node("s", "Switch", "m", "go", T="type: DT_INT32")
    + node("sum", "Add", "big_in", "s:1", T="type: DT_INT32")
    + node("push", "StackPushV2", "stack_in", "sum", T="type: DT_INT32")
    + node("next", "AddV2", "s:1", "one_in", "^push", T="type: DT_INT32") + node("n", "NextIteration", "next", T="type: DT_INT32")
    + node("out", "Exit", "s", T="type: DT_INT32"))
for name, text in SIZES.items():
    refused(f"{name}, limited", *run(text, "--memory_limit", 1 << 28))
check("memory stays below the limit", peak(0) < (1 << 28) + (1 << 28), f"{peak(0)} bytes")
# What the system refuses is the same error.
for name, text in SIZES.items():
    code, out, err = run(text, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 * GB, 2 * GB)))
    refused(f"{name}, refused by the system", code, out, err)
code, out, err = run(int_const("out", 7), "--memory_limit", 0)
check("no limit", code == 0 and "7" in out, err)
code, out, err = call("show", models / "cnn", "--all")
check("show is not limited by accident", code == 0, err)

# Threads that the system refuses: each would have a stack of the process's limit, for which there are no addresses.
def no_room_for_stacks():
    resource.setrlimit(resource.RLIMIT_STACK, (64 * GB, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (8 * GB, 8 * GB))


model, log = models / "cnn", models / "cnn.tfrecord"
code, out, err = call("replay", model, "--log", log, "--clients", 16, "--repeat", 32,
                        preexec_fn=no_room_for_stacks)
refused("no thread for a client", code, out, err)
finish()
