"""Control flow of version 1: switches, merges and loops, which only the data-flow executor runs."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops
DEAD = "Retval"
TYPES = NUMBERS + ["bool", "string"]


def ph(dtype):
    return tf.compat.v1.placeholder(tf.as_dtype(dtype), None)


def switches(r):
    for t in TYPES:

        def build(t=t):
            x, p = ph(t), ph("bool")
            v = r.numbers(t, (2, 2))
            low, high = R.Switch(data=x, pred=p)
            back = R.Merge(inputs=[R.Identity(input=low), R.Identity(input=high)])
            yes, no = {x: v, p: np.array(True)}, {x: v, p: np.array(False)}
            return [Step(fetch=[high], feed=yes), Step(fetch=[low], feed=no), Step(fetch=[low], feed=yes, error=DEAD),
                    Step(fetch=list(back), feed=yes), Step(fetch=list(back), feed=no)]

        yield graph_case("Switch", build, name=t)

        def many(t=t):
            x, i = ph(t), ph("int32")
            v = r.numbers(t, (2,))
            out = tf.raw_ops.Merge(inputs=list(switch_n(x, i, 3)))
            return [Step(fetch=list(out), feed={x: v, i: i32(k)}) for k in (0, 1, 2, 3, -1)]

        yield graph_case("_SwitchN", many, name=t)

    def not_scalar():
        x, p = ph("float"), ph("bool")
        return [Step(fetch=[R.Switch(data=x, pred=p)[0]], feed={x: r.normal((2,)), p: np.array([True])},
                     error="The second input must be a scalar, but it has shape [1]")]

    yield graph_case("Switch", not_scalar, name="vector")

    def both():
        # Only the taken side runs: the other would fail.
        x, p = ph("float"), ph("bool")
        low, high = R.Switch(data=x, pred=p)
        m = R.Merge(inputs=[R.Reshape(tensor=low, shape=[7]), high])
        v = r.normal((2,))
        return [Step(fetch=list(m), feed={x: v, p: np.array(True)}),
                Step(fetch=list(m), feed={x: v, p: np.array(False)}, error="")]

    yield graph_case("Merge", both, name="one_side_fails")

    def dead_control():
        # A node with a dead control input is dead.
        x, p = ph("float"), ph("bool")
        low, high = R.Switch(data=x, pred=p)
        with tf.control_dependencies([R.Identity(input=low)]):
            after = R.Neg(x=x)
        trigger = {x: np.float32(2), p: np.array(False)}
        return [Step(fetch=[after], feed=trigger), Step(fetch=[after], feed={**trigger, p: np.array(True)}, error=DEAD)]

    yield graph_case("Switch", dead_control, name="control")
    for t in TYPES[:9]:

        def triggered(t=t):
            # ControlTrigger runs although what it waits for is dead.
            x, p = ph(t), ph("bool")
            low, _ = R.Switch(data=x, pred=p)
            with tf.control_dependencies([R.Identity(input=low)]):
                trigger = R.ControlTrigger()
            with tf.control_dependencies([trigger]):
                out = R.Identity(input=x)
            v = r.numbers(t, (2,))
            return [Step(fetch=[out], feed={x: v, p: np.array(b)}) for b in (True, False)]

        yield graph_case("ControlTrigger", triggered, name=t)

        def nothing(t=t):
            x = ph(t)
            with tf.control_dependencies([R.NoOp()]):
                return [Step(fetch=[R.Identity(input=x)], feed={x: r.numbers(t, (2,))}), Step(run=[R.NoOp()])]

        yield graph_case("NoOp", nothing, name=t)


def switch_n(x, i, n):
    from tensorflow.python.framework import op_def_library
    return op_def_library._apply_op_helper("_SwitchN", name="switch_n", data=x, output_index=i, num_outs=n)[2].outputs


def loop(t, v, limit, parallel=10):
    """v + v + ... as tf.while_loop of version 1 builds it."""

    def build():
        tf.compat.v1.disable_control_flow_v2()
        x, n = ph(t), ph("int32")
        start = tf.constant(0)
        i, y = tf.compat.v1.while_loop(lambda i, y: tf.less(i, n), lambda i, y: (i + 1, y + y), [start, x],
                                       shape_invariants=[start.shape, tf.TensorShape(None)], parallel_iterations=parallel)
        return [Step(fetch=[i, y], feed={x: v, n: i32(k)}) for k in (limit, 0, 1)]

    return graph_case("Enter", build, name=t)


def loops(r):
    for t in FLOATING + ["int32", "int64", "uint8", "complex64", "string"]:
        yield loop(t, r.numbers(t, (2,)), 4, parallel=1 if t == "half" else 10)

    def nested():
        x = ph("float")

        def body(i, y):
            return i + 1, tf.compat.v1.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * 2.), [0, y],
                                                  shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])[1] + 1.

        i, y = tf.compat.v1.while_loop(lambda i, y: i < 4, body, [0, x],
                                       shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])
        return [Step(fetch=[i, y], feed={x: r.normal((3,))})]

    yield graph_case("Enter", nested, name="nested")

    def branch_inside():
        x = ph("float")
        i, y = tf.compat.v1.while_loop(
            lambda i, y: i < 5, lambda i, y: (i + 1, tf.compat.v1.cond(tf.equal(i % 2, 0), lambda: y * 2., lambda: y - 1.)),
            [0, x], shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])
        return [Step(fetch=[i, y], feed={x: r.normal((3,))})]

    yield graph_case("Enter", branch_inside, name="branch_inside")

    def failing():
        x = ph("float")
        i, y = tf.compat.v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.reshape(y, [2, -1])), [0, x],
                                       shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])
        return [Step(fetch=[i, y], feed={x: r.normal((4,))}), Step(fetch=[i, y], feed={x: r.normal((3,))}, error="")]

    yield graph_case("Enter", failing, name="fails")

    def passed(t):
        x = ph(t)
        return [Step(fetch=[R.Exit(data=R.Enter(data=x, frame_name="f", is_constant=c))], feed={x: r.numbers(t, (2,))})
                for c in (False, True)]

    for t in TYPES:
        yield graph_case("Exit", lambda t=t: passed(t), name=t)

    def ref_loop(t):
        # A loop whose value is a reference variable, written in each round.
        v = R.VariableV2(shape=tf.TensorShape(None), dtype=tf.as_dtype(t), shared_name="v")
        x = ph(t)
        n = R.Enter(data=tf.constant(3), frame_name="f", is_constant=True)
        one = R.Enter(data=x, frame_name="f", is_constant=True)
        i = R.Enter(data=tf.constant(0), frame_name="f")
        ref = R.RefEnter(data=v, frame_name="f")
        mi, mr = R.Merge(inputs=[i, i]), R.RefMerge(inputs=[ref, ref])
        go = R.LoopCond(input=R.Less(x=mi[0], y=n))
        si, sr = R.Switch(data=mi[0], pred=go), R.RefSwitch(data=mr[0], pred=go)
        added = R.AssignAdd(ref=sr[1], value=one)
        step = R.Enter(data=tf.constant(1), frame_name="f", is_constant=True)
        with tf.control_dependencies([added]):
            ni = R.NextIteration(data=R.Add(x=si[1], y=step))
        nr = R.RefNextIteration(data=added)
        mi[0].op._update_input(1, ni)
        mr[0].op._update_input(1, nr)
        out = R.RefExit(data=sr[0])
        return [Step(run=[R.Assign(ref=v, value=x, validate_shape=False).op], feed={x: r.numbers(t, (2,))}),
                Step(fetch=[R.Identity(input=out), R.Exit(data=si[0])], feed={x: r.numbers(t, (2,))})]

    for t in ["float", "double", "half", "bfloat16", "int64", "uint32", "complex64", "complex128"]:
        yield graph_case("RefNextIteration", lambda t=t: ref_loop(t), name=t)


def cases(r):
    tf.compat.v1.disable_eager_execution()
    yield from switches(r)
    yield from loops(r)
