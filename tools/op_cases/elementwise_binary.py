"""Elementwise ops: binary; see elementwise.py."""
from op_cases import elementwise as e


def cases(r):
    yield from e.binary(r)
    yield from e.equality(r)
