"""The table of models: ROWS[name] = Row. A row's function saves a model to `path` and returns its requests: a list for `serving_default`, or
{signature: list}; None: drawn from the signatures. It imports what it needs itself; an ImportError skips the row."""
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Row:
    requirements: str  # what pip installs for it, beside tensorflow
    build: typing.Callable


ROWS = {}


def stranger(requirements, name=None):
    def add(build):
        ROWS[name or build.__name__] = Row(requirements, build)
        return build
    return add
