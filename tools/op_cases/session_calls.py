"""Calls of functions in a session, whose bodies become part of the graph: what waits for what stays."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def ph(dtype):
    return tf.compat.v1.placeholder(tf.as_dtype(dtype), [])


def handle(name="v"):
    return R.VarHandleOp(dtype=tf.float32, shape=[], shared_name=name)


@tf.function(autograph=False)
def read(h):
    return R.ReadVariableOp(resource=h, dtype=tf.float32)


@tf.function(autograph=False)
def read_deep(h):
    return read(h) + 1.0


@tf.function(autograph=False)
def assign(h, x):
    R.AssignVariableOp(resource=h, value=R.Sqrt(x=R.Sqrt(x=x)))
    return R.Neg(x=x)


@tf.function(autograph=False)
def add_only(h, x):
    R.AssignAddVariableOp(resource=h, value=x)
    return R.Identity(input=x)


def far(x):
    """Later than what hangs on a handle alone."""
    for _ in range(4):
        x = R.Sqrt(x=x)
    return x


def order(r):

    def started(function, name):

        def build():
            v, x = handle(), ph("float")
            write = R.AssignVariableOp(resource=v, value=far(x))
            with tf.control_dependencies([write]):
                out = function(v)
            return [Step(run=[write], feed={x: np.float32(1)}), Step(fetch=[out], feed={x: np.float32(2**16)}),
                    Step(fetch=[out], feed={x: np.float32(3**16)})]

        return graph_case("StatefulPartitionedCall", build, name=name)

    yield started(read, "reads_after_an_assignment")
    yield started(read_deep, "a_nested_call_reads_after_an_assignment")

    def after():
        v, x = handle(), ph("float")
        first = R.AssignVariableOp(resource=v, value=x)
        out = assign(v, x)
        with tf.control_dependencies([out]):
            late = R.ReadVariableOp(resource=v, dtype=tf.float32)
        return [Step(run=[first], feed={x: np.float32(5)}), Step(fetch=[late], feed={x: np.float32(16)}),
                Step(fetch=[out, late], feed={x: np.float32(81)})]

    yield graph_case("StatefulPartitionedCall", after, name="who_waits_for_a_call_waits_for_its_effects")

    def twice():
        v, x = handle(), ph("float")
        first = R.AssignVariableOp(resource=v, value=x)
        one = add_only(v, x)
        with tf.control_dependencies([one]):
            seen = read(v)
        with tf.control_dependencies([seen]):
            two = add_only(v, far(x))
        with tf.control_dependencies([two]):
            last = read_deep(v)
        return [Step(run=[first], feed={x: np.float32(1)}), Step(fetch=[seen, last], feed={x: np.float32(1)}),
                Step(fetch=[seen, last], feed={x: np.float32(2**16)}), Step(run=[two], feed={x: np.float32(1)}),
                Step(fetch=[seen], feed={x: np.float32(1)})]

    yield graph_case("StatefulPartitionedCall", twice, name="calls_in_turn")

    def queued():
        q, x = R.FIFOQueueV2(component_types=[tf.float32], shared_name="q"), ph("float")

        @tf.function(autograph=False)
        def put(q, x):
            R.QueueEnqueueV2(handle=q, components=[x])
            return R.Identity(input=x)

        one = put(q, far(x))
        with tf.control_dependencies([one]):
            two = put(q, x)
        with tf.control_dependencies([two]):
            out = [R.QueueDequeueV2(handle=q, component_types=[tf.float32])[0]]
        with tf.control_dependencies(out):
            out += [R.QueueDequeueV2(handle=q, component_types=[tf.float32])[0]]
        return [Step(fetch=out, feed={x: np.float32(2**16)})]

    yield graph_case("StatefulPartitionedCall", queued, name="enqueued_in_turn")

    def dead():
        # A call of one side of a Switch runs when that side does.
        v, x, p = handle(), ph("float"), ph("bool")
        first = R.AssignVariableOp(resource=v, value=x)
        low, high = R.Switch(data=x, pred=p)

        @tf.function(autograph=False)
        def count(h, x):
            R.AssignAddVariableOp(resource=h, value=R.OnesLike(x=1.0))
            return R.Neg(x=x)

        out = R.Merge(inputs=[R.Identity(input=low), count(v, high)])[0]
        with tf.control_dependencies([out]):
            seen = R.ReadVariableOp(resource=v, dtype=tf.float32)
        return [Step(run=[first], feed={x: np.float32(1), p: np.array(True)})] + [
            Step(fetch=[out, seen], feed={x: np.float32(3), p: np.array(t)}) for t in (False, True, False, True)]

    yield graph_case("StatefulPartitionedCall", dead, name="of_a_side_of_a_switch")


def direct(r):
    """Nodes whose op is the function's name, as Defun of version 1 makes them."""
    from tensorflow.python.framework.function import Defun

    @Defun(tf.float32, func_name="Halve")
    def halve(x):
        return x / 2.0

    @Defun(tf.float32, tf.float32, func_name="HalvesAndSum")
    def halves(x, y):
        return halve(x), halve(x) + halve(y)

    def build():
        x, y = ph("float"), ph("float")
        a, b = halves(R.Sqrt(x=x), y)
        return [Step(fetch=[a, b], feed={x: np.float32(16), y: np.float32(3)}), Step(fetch=[b], feed={x: np.float32(4), y: np.float32(-1)})]

    yield graph_case("HalvesAndSum", build, name="by_its_name")

    @Defun(tf.resource, tf.float32, func_name="AddToIt")
    def add(h, x):
        with tf.control_dependencies([R.AssignAddVariableOp(resource=h, value=x)]):
            return R.ReadVariableOp(resource=h, dtype=tf.float32)

    def stateful():
        v, x = handle(), ph("float")
        first = R.AssignVariableOp(resource=v, value=x)
        out = add(v, x)
        return [Step(run=[first], feed={x: np.float32(1)})] + [Step(fetch=[out], feed={x: np.float32(k)}) for k in (2, 3)]

    yield graph_case("AddToIt", stateful, name="with_effects_by_its_name")


def cases(r):
    tf.compat.v1.disable_eager_execution()
    yield from order(r)
    yield from direct(r)
