"""Control flow of version 1 around constants and calls, and what stands in no frame, or in several."""
from op_cases import *

FOLDER = "sessions"
R = tf.raw_ops


def ph(dtype):
    return tf.compat.v1.placeholder(tf.as_dtype(dtype), None)


def count(body):
    """A loop: body(i) from 0 until 10 is reached."""
    start = ph("int32")
    i = R.Enter(data=start, frame_name="loop")
    n = R.Enter(data=tf.constant(10), frame_name="loop", is_constant=True)
    merge = R.Merge(inputs=[i, i])
    go = R.LoopCond(input=R.Less(x=merge[0], y=n))
    done, more = R.Switch(data=merge[0], pred=go)
    merge[0].op._update_input(1, R.NextIteration(data=body(more)))
    return [Step(fetch=[R.Exit(data=done)], feed={start: np.int32(0)})]


def branches(of_yes, of_no):
    p = ph("bool")
    no, yes = R.Switch(data=p, pred=p)
    m = R.Merge(inputs=[of_no(no), of_yes(yes)])
    return [Step(fetch=list(m), feed={p: np.array(True)}), Step(fetch=list(m), feed={p: np.array(False)})]


def after(t, v):
    with tf.control_dependencies([R.Identity(input=t)]):
        return tf.constant(v)


def constants():
    # What is computed of constants belongs to the branch, and to the frame, of the constants.
    yield graph_case("Merge", lambda: branches(lambda t: R.Neg(x=after(t, 1)), lambda f: R.Neg(x=after(f, 2))), name="of_constants")
    yield graph_case("Merge", lambda: branches(lambda t: R.Neg(x=R.Neg(x=after(t, 1))), lambda f: R.AddV2(x=after(f, 2), y=tf.constant(3))),
                     name="of_computed_constants")
    yield graph_case("NextIteration", lambda: count(lambda i: R.AddV2(x=i, y=R.Neg(x=after(i, -1)))), name="of_constants")


def calls():

    @tf.function(autograph=False)
    def one(x):
        return tf.constant(1)

    @tf.function(autograph=False)
    def two(x):
        return R.Neg(x=tf.constant(-2))

    @tf.function(autograph=False)
    def more(i):
        return R.AddV2(x=i, y=tf.constant(1))

    yield graph_case("Merge", lambda: branches(one, two), name="of_calls")
    yield graph_case("NextIteration", lambda: count(more), name="of_calls")


def frames():

    def two_frames():
        x = ph("float")
        a, b = R.Enter(data=x, frame_name="a"), R.Enter(data=x, frame_name="b")
        return [Step(fetch=[R.Exit(data=R.AddV2(x=a, y=b))], feed={x: np.float32(1)}, error="has inputs from different frames. The input")]

    def outside():
        x = ph("float")
        return [Step(fetch=[R.Exit(data=R.AddV2(x=R.Enter(data=x, frame_name="a"), y=R.Neg(x=x)))], feed={x: np.float32(1)},
                     error="has inputs from different frames. The input")]

    def nameless():
        x = ph("float")
        return [Step(fetch=[R.Exit(data=R.Enter(data=x, frame_name=""))], feed={x: np.float32(1)}, error="must have a frame name.")]

    def no_frame():
        x = ph("float")
        return [Step(fetch=[R.Exit(data=x)], feed={x: np.float32(1)}, error="Invalid Exit op: Cannot find a corresponding Enter op.")]

    yield graph_case("Enter", two_frames, name="two_frames")
    yield graph_case("Enter", outside, name="and_outside")
    yield graph_case("Enter", nameless, name="without_name")
    yield graph_case("Exit", no_frame, name="without_frame")

    def once():
        return [Step(fetch=[R.NextIteration(data=R.Neg(x=tf.constant(1.0)))])]

    yield graph_case("NextIteration", once, name="without_frame")

    def again():
        x = ph("float")
        m = R.Merge(inputs=[x, x])
        m[0].op._update_input(1, R.NextIteration(data=m[0]))
        return [Step(fetch=[m[0]], feed={x: np.float32(1)}, error="Retval[0] has already been set.")]

    yield graph_case("NextIteration", again, name="closes_no_loop")


def cases(r):
    tf.compat.v1.disable_eager_execution()
    yield from constants()
    yield from calls()
    yield from frames()
