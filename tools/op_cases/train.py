"""Optimizer steps on variables of both generations, dense and sparse."""
from op_cases import *
from op_cases.state import ph, var, fed
from tensorflow.python.framework import op_def_registry

R = tf.raw_ops
EXACT = FLOATS
MOST = FLOATING + COMPLEX
# name -> variables, other arguments and their values, types of the dense and of the sparse op
RULES = {
    "GradientDescent": (1, dict(alpha=0.1), MOST, None),
    "ProximalGradientDescent": (1, dict(alpha=0.1, l1=0.5, l2=0.25), EXACT, EXACT),
    "Momentum": (2, dict(lr=0.1, momentum=0.75), MOST, MOST),
    "KerasMomentum": (2, dict(lr=0.1, momentum=0.75), MOST, MOST),
    "Adagrad": (2, dict(lr=0.1), MOST, MOST),
    "AdagradV2": (2, dict(lr=0.1, epsilon=0.01), MOST, MOST),
    "ProximalAdagrad": (2, dict(lr=0.1, l1=0.5, l2=0.25), EXACT, EXACT),
    "AdagradDA": (3, dict(lr=0.1, l1=0.25, l2=0.5, global_step=3), EXACT, EXACT),
    "Adadelta": (3, dict(lr=0.1, rho=0.75, epsilon=0.01), MOST, MOST),
    "Adam": (3, dict(beta1_power=0.5, beta2_power=0.75, lr=0.1, beta1=0.875, beta2=0.9375, epsilon=0.01), MOST, None),
    "AdamWithAmsgrad": (4, dict(beta1_power=0.5, beta2_power=0.75, lr=0.1, beta1=0.875, beta2=0.9375, epsilon=0.01),
                        FLOATING, None),
    "AdaMax": (3, dict(beta1_power=0.5, lr=0.1, beta1=0.875, beta2=0.9375, epsilon=0.01), FLOATS + ["half"], None),
    "AddSign": (2, dict(lr=0.1, alpha=0.5, sign_decay=0.75, beta=0.875), FLOATING, None),
    "PowerSign": (2, dict(lr=0.1, logbase=0.5, sign_decay=0.75, beta=0.875), FLOATING, None),
    "RMSProp": (3, dict(lr=0.1, rho=0.75, momentum=0.5, epsilon=0.01), MOST, FLOATS + ["half"] + COMPLEX),
    "CenteredRMSProp": (4, dict(lr=0.1, rho=0.75, momentum=0.5, epsilon=0.5), MOST, FLOATS + ["half"] + COMPLEX),
    "Ftrl": (3, dict(lr=0.1, l1=0.25, l2=0.5, lr_power=-0.5), FLOATING, FLOATING),
    "FtrlV2": (3, dict(lr=0.1, l1=0.25, l2=0.5, l2_shrinkage=0.25, lr_power=-0.5), FLOATING, FLOATING),
}
# On rows of no elements.
EMPTY_ROWS = ("Momentum", "KerasMomentum", "Adadelta", "RMSProp", "CenteredRMSProp")
# TensorFlow's process ends where these are not scalars.
UNCHECKED = {("AdamWithAmsgrad", h) for h in RULES["AdamWithAmsgrad"][1]} | {
    (rule, h) for rule in ("AddSign", "PowerSign") for h in ("sign_decay", "beta")}


def tol(t):
    return {"half": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1), "float": (2e-5, 2e-6)}.get(t)


def ref(t, shape, name):
    return R.VariableV2(shape=shape, dtype=tf.as_dtype(t), shared_name=name)


def step(op, slots, grad, hyper, indices=None, error=None, name=None, start=True, after=False, **attrs):
    """Assigns the slots, runs the op once (twice on references, whose result is fetched), reads the slots, behind an
    error only with `after`."""
    t = tf.as_dtype(np.asarray(grad).dtype)
    tname = {"float32": "float", "float64": "double", "float16": "half"}.get(t.name, t.name)
    args = op_def_registry.get(op).input_arg
    by_ref = args[0].is_ref

    def build():
        handles = [ref(t, None if error else s.shape, f"v{i}") if by_ref else var(t, f"v{i}") for i, s in enumerate(slots)]
        steps = []
        if start:
            feed = {ph(t): s for s in slots}
            run = [R.Assign(ref=h, value=x, validate_shape=False).op if by_ref else R.AssignVariableOp(resource=h, value=x)
                   for h, x in zip(handles, feed)]
            steps.append(Step(run=run, feed=feed))
        given, feed, left = {}, {}, list(handles)
        for a in args:
            if a.is_ref or a.type_attr == "" and a.type == tf.resource.as_datatype_enum:
                given[a.name] = left.pop(0)
                continue
            v = grad if a.name in ("grad", "delta") else indices if a.name == "indices" else hyper[a.name]
            if a.name == "global_step":
                v = np.asarray(v, np.int64)
            elif a.name != "indices":
                v = np.asarray(v).astype(t.as_numpy_dtype)
            p = ph(v.dtype)
            given[a.name], feed[p] = p, v
        out = getattr(R, op)(**given, **attrs)
        steps.append(Step(fetch=[tf.identity(out)] if by_ref and not error else [], run=[out.op if by_ref else out], feed=feed,
                          error=error))
        if error is None or after:
            if not by_ref and error is None:
                steps.append(Step(run=[out], feed=feed))
            read = [tf.identity(h) if by_ref else R.ReadVariableOp(resource=h, dtype=t) for h in handles]
            steps.append(Step(fetch=read))
        return steps

    return graph_case(op, build, name=name or tname, error=None, tol=tol(tname))


def slots_of(r, rule, t, shape):
    """Variables; those that hold squares are positive."""
    n = RULES[rule][0]
    out = [r.numbers(t, shape)]
    for i in range(1, n):
        square = i == 1 and "Ada" in rule and "Adam" not in rule and "Max" not in rule and rule != "AdagradDA" or \
            i == 2 or i == 1 and rule in ("RMSProp", "Ftrl", "FtrlV2")
        out.append(r.uniform(shape, 1, 2, t) if square else r.numbers(t, shape))
    if rule.startswith("Ftrl"):
        out[2] = r.numbers(t, shape)
    return out


def forms(rule):
    dense, sparse = RULES[rule][2:]
    for op in ("Apply" + rule, "ResourceApply" + rule):
        if op_def_registry.get(op):
            yield op, dense, False
    for op in ("SparseApply" + rule, "ResourceSparseApply" + rule):
        if op_def_registry.get(op):
            yield op, sparse, True


def cases(r):
    for rule, (n, hyper, _, _) in RULES.items():
        for op, types, sparse in forms(rule):
            at = dict(indices=i32([2, 0, 2])) if sparse else {}
            lead = lambda shape: (3, *shape[1:]) if sparse else shape
            make = lambda t="float", shape=(3, 2): (slots_of(r, rule, t, shape), r.numbers(t, lead(shape)))
            # References take the same steps; fewer cases show it.
            by_ref = not op.startswith("Resource")
            for t in types[::2] if by_ref and len(types) > 2 else types:
                yield step(op, *make(t), hyper, **at)
            flags = {a.name for a in op_def_registry.get(op).attr}
            for flag, v in (("use_nesterov", True), ("update_slots", False), ("multiply_linear_by_lr", True)):
                if flag in flags:
                    yield step(op, *make(), hyper, **at, **{flag: v}, name=flag)
                    if flag == "use_nesterov" and "half" in types:
                        yield step(op, *make("half"), hyper, **at, **{flag: v}, name=flag + "_half")
            if "l1" in hyper and not by_ref:
                yield step(op, *make(), dict(hyper, l1=0.0), **at, name="no_l1")
                yield step(op, *make(), dict(hyper, l1=0.0, l2=0.0), **at, name="no_l1_l2")
            if "lr_power" in hyper and not by_ref:
                for flag in (False, True):
                    yield step(op, *make(), dict(hyper, lr_power=-0.75), **at, name="power", multiply_linear_by_lr=flag)
                    yield step(op, *make(), dict(hyper, lr_power=0.0), **at, name="no_power", multiply_linear_by_lr=flag)
            s, g = make()
            if sparse:
                if not by_ref:
                    yield step(op, *make(shape=(4, 1)), hyper, **at, name="narrow")
                yield step(op, s, g[:0], hyper, indices=i64([]), name="no_rows")
            else:
                yield step(op, *make(shape=(0, 2)), hyper, name="empty")
                yield step(op, *make(shape=()), hyper, name="scalar")
                e = np.array([0, np.inf, -np.inf, np.nan, -0.0], np.float32)
                yield step(op, [v.astype(np.float32)[:5] for v in slots_of(r, rule, "float", (5,))], e, hyper, name="edge")
            if sparse:
                yield step(op, s, r.normal((3, 2)), hyper, indices=i64([1, 1, 1]), name="one_row")
                e = np.array([[0, np.inf], [-np.inf, np.nan]], np.float32)
                yield step(op, s, e, hyper, indices=i64([2, 0]), name="edge")
            yield step(op, s, g, hyper, **at, start=False, name="uninitialized", error="Invalid variable reference."
                       if op.startswith("Resource") else AS_SAID)
            for i in range(1, 2 if rule == "Adadelta" else min(n, 3)):
                yield step(op, s[:i] + [s[i][:2]] + s[i + 1:], g, hyper, **at, error="do not have the same shape",
                           name=f"slot_{i}")
            for h in list(hyper)[:1 if by_ref else 2]:
                if (rule, h) not in UNCHECKED:
                    yield step(op, s, g, dict(hyper, **{h: [0.5, 0.5]}), **at, error="is not a", name=h)
            if sparse and "Ftrl" in rule and not by_ref or rule == "ProximalAdagrad":
                for h, v in (("lr", 0.0), ("l1", -1.0), ("l2", -1.0), ("l2_shrinkage", -1.0), ("lr_power", 1.0)):
                    if h in hyper:
                        yield step(op, s, g, dict(hyper, **{h: v}), **at, error="is not a", name="bad_" + h)
            yield step(op, s, g[:, :1], hyper, **at, error="var and grad must match in dimension 1" if sparse else
                       "do not have the same shape", name="grad")
            # Of two bad arguments the op names one.
            bad = {h: v if h == "sign_decay" else [0.5, 0.5] for h, v in hyper.items()}
            last = list(hyper)[-1]
            if n > 1:
                yield step(op, s[:1] + [s[1][:2]] + s[2:], g[:, :1], bad, **at, error=AS_SAID, name="first")
            yield step(op, s, g[:, :1], bad, **at, error=AS_SAID, name="second")
            yield step(op, s, g[:, :1], dict(hyper, **{last: [0.5, 0.5]}), **at, error=AS_SAID, name="third")
            if "sign_decay" in hyper:
                yield step(op, s, g, dict(hyper, beta=np.nan), name="nan_beta")
                yield step(op, s, g, dict(hyper, sign_decay=[0.75]), name="one_decay")
            if not sparse:
                continue
            if rule == "AdagradDA":
                yield step(op, s, g, dict(hyper, global_step=-3), **at, name="back")
            outside = "indices[1] = {} is not in [0, 3)" if rule == "KerasMomentum" else \
                "Index {} at offset 1 in indices is out of range"
            for i in (3, -1):
                yield step(op, s, g, hyper, indices=i32([0, i, 1]), error=outside.format(i), name="outside")
            if by_ref:
                continue
            yield step(op, s, g, hyper, indices=i32([0, 3, 1]), error=outside.format(3), name="outside_after", after=True)
            yield step(op, [v[:, :0] for v in s], g[:, :0], hyper, **at, name="inner", error=None if rule in EMPTY_ROWS else
                       "Inner dimension should be greater than zero.")
            for extra in (1, 2):
                yield step(op, s, np.stack([g] * extra, axis=-1), hyper, **at, name=f"longer_{extra}",
                           error=AS_SAID if rule in ("Adagrad", "AdagradV2") else None)
            yield step(op, s, g, bad, indices=i32([[0, 1, 2]]), error=AS_SAID, name="matrix_first")
            yield step(op, s, g, hyper, indices=i32([0, 1]), error="the same size as indices in the first dimension",
                       name="count")
            yield step(op, s, g, hyper, indices=i32([[0, 1, 2]]), error="indices must be one-dimensional", name="matrix")
            yield step(op, [v[0, 0] for v in s], g, hyper, **at, error="var must be at least 1 dimensional", name="scalar")
