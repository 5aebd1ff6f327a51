"""The results of a backend: tensors under result keys, a file for each rank."""

from .tensors import write_tensors

KINDS = ("forward", "output", "loss", "backward", "partial", "input-grad", "hook-calls", "grad", "buffer", "param")


def key(step, kind, stage, microbatch, name):
    """`<step>/<kind>/<stage>/<microbatch>/<name>`; None if stage or micro-batch does not apply."""
    assert kind in KINDS, kind
    number = lambda n: "-" if n is None else str(n)
    return f"{step}/{kind}/{number(stage)}/{number(microbatch)}/{name}"


class Results(dict):
    """{key: tensor}; put() copies the present values."""

    def put(self, step, kind, stage, microbatch, name, tensor):
        self[key(step, kind, stage, microbatch, name)] = tensor.detach().clone()

    def write(self, path):
        """Writes the file atomically."""
        write_tensors(path, self)
