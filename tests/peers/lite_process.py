"""LiteRT and TensorFlow's converter in processes of their own, which may abort; sizes of .tflite files."""
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

RUNNER = """
import os, pickle, signal, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
jobs, answers = sys.argv[1:]
OPTIONS = {}
jobs = pickle.load(open(jobs, 'rb'))


def ask(path, requests):
    said = []
    try:
        interpreter = Interpreter(model_path=path, **OPTIONS)
        runners = {key: interpreter.get_signature_runner(key) for key in interpreter.get_signature_list()}
        for key, inputs in requests:
            if key not in runners:
                said.append(f'no signature {key}')
                continue
            try:
                said.append({k: np.array(v) for k, v in runners[key](**inputs).items()})
            except (RuntimeError, ValueError, TypeError) as e:
                said.append(f'{type(e).__name__}: {e}')
    except (RuntimeError, ValueError) as e:
        said = [f'{type(e).__name__}: {e}'] * len(requests)
    return said


with open(answers, 'ab') as out:
    done = 0
    while done < len(jobs):  # a child that dies takes one file with it
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            for path, requests in jobs[done:]:
                said = ask(path, requests)
                pickle.dump(said, out)
                out.flush()
                os.write(write, b'.')
            os._exit(0)
        os.close(write)
        while got := os.read(read, 1024):
            done += len(got)
        os.close(read)
        status = os.waitpid(child, 0)[1]
        if done < len(jobs):
            ended = signal.strsignal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else f'code {os.WEXITSTATUS(status)}'
            pickle.dump([f'LiteRT ended: {ended}'] * len(jobs[done][1]), out)
            out.flush()
            done += 1
"""
# LiteRT's own kernels alone, and those of the interpreter that TensorFlow 2.21 brings.
PLAIN_RUNNER = RUNNER.replace("OPTIONS = {}", """from ai_edge_litert.interpreter import OpResolverType
OPTIONS = dict(experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)""")
TENSORFLOW_RUNNER = PLAIN_RUNNER.replace("from ai_edge_litert.interpreter import OpResolverType", "from tensorflow.lite.python.interpreter import OpResolverType").replace(
    "from ai_edge_litert.interpreter import Interpreter", "from tensorflow.lite.python.interpreter import Interpreter")


def python(text, *arguments, limit=300):
    """(exit code, the end of what was said)"""
    try:
        p = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True, timeout=limit, errors="replace")
    except subprocess.TimeoutExpired:
        return 124, f"it took longer than {limit} s"
    return p.returncode, p.stderr.strip()[-3000:]


def one_line(text, most=200):
    return " ".join(text.split())[-most:]


def reason(text):
    """Of a trace of Python, what was raised."""
    found = re.findall(r"^(?:[\w.]*(?:Error|Exception)\b.*)$", text, re.M)
    return one_line(found[-1] if found else text)


def litert_answers(jobs, limit=300, runner=RUNNER):
    """For each (file, [(signature, inputs)]) what LiteRT answers to each request: outputs by key, or an error's text. A file that makes it abort is answered
    with that; the others are asked in another process."""
    out = []
    with tempfile.TemporaryDirectory(prefix="smelt_litert_") as work:
        asked, answers = pathlib.Path(work) / "jobs", pathlib.Path(work) / "answers"
        while len(out) < len(jobs):
            asked.write_bytes(pickle.dumps([(str(path), requests) for path, requests in jobs[len(out):]]))
            answers.write_bytes(b"")
            code, said = python(runner, asked, answers, limit=limit)
            with open(answers, "rb") as f:
                while True:
                    try:
                        out.append(pickle.load(f))
                    except EOFError:
                        break
            if len(out) < len(jobs):
                out.append([f"LiteRT ended with {code}: {one_line(said)}"] * len(jobs[len(out)][1]))
    return out


def difference(got, want, tolerance, unlike=()):
    """Why the outputs are not those; empty: they are. Of those named `unlike`, type and shape alone count."""
    import numpy as np
    if isinstance(got, str):
        return got
    if set(got) != set(want):
        return f"outputs {sorted(got)}, wanted {sorted(want)}"
    for k, w in want.items():
        g = got[k]
        if g.dtype.kind != w.dtype.kind and not {g.dtype.kind, w.dtype.kind} <= set("OSU"):
            return f"{k}: type {g.dtype}, wanted {w.dtype}"
        if g.shape != w.shape:
            return f"{k}: shape {g.shape}, wanted {w.shape}"
        if k in unlike or w.size == 0:
            continue
        if w.dtype.kind in "fc":
            finite = np.isfinite(w)
            if not np.array_equal(finite, np.isfinite(g)) or not np.array_equal(g[~finite], w[~finite], equal_nan=True):
                return f"{k}: what is not finite differs"
            g, w = g[finite], w[finite]
            most = float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-6)) if w.size else 0
            if most > tolerance:
                return f"{k}: {most:.2g} of the range"
        elif not np.array_equal(g, w):
            return f"{k}: {(g != w).sum()} of {w.size} differ"
    return ""


def operators(data):
    """The operators of each subgraph, by their builtin's name or the code of a custom one."""
    from tensorflow.lite.python import schema_py_generated as schema
    names = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
    model = schema.Model.GetRootAs(data, 0)
    out = []
    for i in range(model.SubgraphsLength()):
        graph = model.Subgraphs(i)
        ops = []
        for k in range(graph.OperatorsLength()):
            code = model.OperatorCodes(graph.Operators(k).OpcodeIndex())
            number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            ops.append(code.CustomCode().decode() if names[number] == "CUSTOM" else names[number])
        out.append(ops)
    return out
