"""Graphs that the page of smelt optimize --html must show: an image network in blocks, and very many nodes in one place."""


def blocks(count=50):
    """Residual blocks as Keras names them; the convolutions' constants are small, as only the shape of the graph matters."""
    out = ["x = Placeholder {dtype=float, shape=[1,56,56,8]}"]
    last = "x"

    def convolution(scope, source):
        out.append(f"{scope}_conv/kernel = Const {{value=float[1,1,8,8]{{0.1}}}}")
        out.append(f'{scope}_conv/Conv2D = Conv2D({source}, {scope}_conv/kernel) {{T=float, strides=list(1,1,1,1), padding="SAME", data_format="NHWC"}}')
        out.append(f"{scope}_conv/bias = Const {{value=float[8]{{0.5}}}}")
        out.append(f'{scope}_conv/BiasAdd = BiasAdd({scope}_conv/Conv2D, {scope}_conv/bias) {{T=float, data_format="NHWC"}}')
        return f"{scope}_conv/BiasAdd"
    for b in range(1, count + 1):
        scope = f"resnet/stage{1 + b // 13}/block{b}"
        start = last
        for k in (1, 2, 3):
            last = convolution(f"{scope}/{k}", last)
            if k < 3:
                out.append(f"{scope}/{k}_relu/Relu = Relu({last}) {{T=float}}")
                out.append(f"{scope}/{k}_relu/Identity = Identity({scope}/{k}_relu/Relu) {{T=float}}")
                last = f"{scope}/{k}_relu/Identity"
        out.append(f"{scope}/add = AddV2({start}, {last}) {{T=float}}")
        out.append(f"{scope}/out = Relu({scope}/add) {{T=float}}")
        last = f"{scope}/out"
    out.append(f"y = Identity({last}) {{T=float}}")
    return "\n".join(out) + "\n"


def many(count=20000, scope=""):
    """So many nodes without scopes, or all in one: chains with lines across, near and far."""
    out = ["x = Placeholder {dtype=float, shape=[2,2]}"]
    names = ["x"]
    for i in range(count - 2):
        name, far = f"{scope}n{i}", names[(i * 7919) % len(names)] if i % 10 == 0 else names[max(0, len(names) - 1 - i % 9)]
        if i % 3 == 2:
            out.append(f"{name} = Neg({names[-1]}) {{T=float}}")
        else:
            out.append(f"{name} = {'AddV2' if i % 2 else 'Mul'}({names[-1]}, {far}) {{T=float}}")
        names.append(name)
    out.append(f"y = Identity({names[-1]}) {{T=float}}")
    return "\n".join(out) + "\n"
