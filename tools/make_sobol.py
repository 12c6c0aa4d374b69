#!/usr/bin/env python3
"""Writes smelt/kernels/random/sobol_numbers.inc: where each dimension of a Sobol sequence begins.

The numbers are those of Stephen Joe and Frances Kuo (new-joe-kuo-6), taken from what TensorFlow's SobolSample
answers. Dimensions whose polynomials have degrees up to 15 are kept. Every dimension is checked as far as
TensorFlow goes: 30 digits.
"""
import base64
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

OUT = pathlib.Path(__file__).resolve().parent.parent / "smelt" / "kernels" / "random" / "sobol_numbers.inc"
DEGREE, DIGITS = 15, 30
NOTICE = """Initial direction numbers of Sobol sequences by Stephen Joe and Frances Kuo (new-joe-kuo-6).
Long because it is a table.

Copyright (c) 2008, Frances Y. Kuo and Stephen Joe
All rights reserved.

Redistribution and use in source and binary forms, with or without modification, are permitted
provided that the following conditions are met:

    * Redistributions of source code must retain the above copyright notice, this list of
      conditions and the following disclaimer.

    * Redistributions in binary form must reproduce the above copyright notice, this list of
      conditions and the following disclaimer in the documentation and/or other materials provided
      with the distribution.

    * Neither the names of the copyright holders nor the names of the University of New South Wales
      and the University of Waikato and its contributors may be used to endorse or promote products
      derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS ``AS IS'' AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A
PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDERS BE LIABLE FOR ANY DIRECT,
INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO,
PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS
INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY,
OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN
IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.

Base64 of a string of bits, highest first. For each dimension from the second on, whose polynomial
has degree s: m_2 without its last bit (always 1) in one bit, m_3 in two, ..., m_s in s - 1. (m_1 is
1.) Written by tools/make_sobol.py."""


def primitive(p, degree):
    """Is x of order 2^degree - 1 modulo the polynomial p over GF(2)?"""
    order, rest = 2**degree - 1, 2**degree - 1

    def power(e):
        out, base = 1, 2 if degree > 1 else 2 ^ p
        while e:
            if e & 1:
                out = times(out, base)
            base, e = times(base, base), e >> 1
        return out

    def times(a, b):
        out = 0
        while b:
            if b & 1:
                out ^= a
            a, b = a << 1, b >> 1
            if a >> degree:
                a ^= p
        return out

    if power(order) != 1:
        return False
    f = 2
    while f * f <= rest:
        if rest % f == 0:
            if power(order // f) == 1:
                return False
            while rest % f == 0:
                rest //= f
        f += 1
    return rest == 1 or rest == order or power(order // rest) != 1


def polynomials():
    return [(d, p) for d in range(1, DEGREE + 1) for p in range(1 << d | 1, 2 << d, 2) if primitive(p, d)]


def answered(dims):
    """m[k, j]: TensorFlow's direction number k (from 0) of dimension j (from 0), an odd integer below 2^(k+1)."""
    def point(n):
        if n == 0:
            return np.zeros(dims, np.uint64)
        x = tf.raw_ops.SobolSample(dim=dims, num_results=1, skip=n - 1, dtype=tf.float64).numpy()[0]
        return (x * 2**32).astype(np.uint64)

    return np.stack([(point(2**k) ^ point(2**k - 1)) >> np.uint64(31 - k) for k in range(DIGITS)])


def main():
    polys = polynomials()
    m = answered(len(polys) + 1)
    assert (m[:, 0] == 1).all()
    bits = []
    for j, (s, p) in enumerate(polys):
        mine = [int(v) for v in m[:s, j + 1]]
        for k in range(1, s):
            bits += [mine[k] >> b & 1 for b in range(k, 0, -1)]
        for k in range(s, DIGITS):
            v = mine[k - s] ^ mine[k - s] << s
            for i in range(1, s):
                if p >> (s - i) & 1:
                    v ^= mine[k - i] << i
            mine.append(v)
        assert mine == [int(v) for v in m[:, j + 1]], (j, s, p)
    text = base64.b64encode(np.packbits(bits).tobytes()).decode()
    lines = ["// " + l if l else "//" for l in NOTICE.split("\n")]
    lines += ['"' + text[i:i + 96] + '"' for i in range(0, len(text), 96)]
    OUT.write_text("\n".join(lines) + "\n")
    print(f"{len(polys) + 1} dimensions, {len(text)} characters")


if __name__ == "__main__":
    main()
