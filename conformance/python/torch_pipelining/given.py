"""What a step is given, as a user of PyTorch gives it, and the gradients that PyTorch leaves in the inputs."""

import torch


class Given:
    """The inputs of one step. In a case with `input_gradients` they are leaves, and their gradients are read from them.

    A batch is given whole: PyTorch divides it, and the rows of a leaf's gradient are those of the micro-batches. It is given
    one by one (arg_mbs), each micro-batch with leaves of its own, in a case whose user divides it, where only some
    micro-batches require gradients, and where an input that every micro-batch gets whole would have one gradient for all
    of them; unless that is the gradient that the case asks for.
    """

    def __init__(self, case, step, by_keyword):
        self._case, self._step = case, step
        self._by_keyword = by_keyword
        self._names = [entry["name"] for entry in case.json["inputs"]]
        self._chunks = [entry["chunk"] for entry in case.json["inputs"]]
        self.divided = is_divided(case, step)
        if self.divided:
            self._pieces = [self._leaves(case.inputs(step, m), m) for m in range(case.microbatches)]
        else:
            self._whole = self._leaves(case.batch_inputs(step), 0)

    def _leaves(self, inputs, microbatch):
        wanted = self._case.needs_gradients(self._step, microbatch)
        return [leaf(x) if wanted else x for x in inputs]

    def _split(self, inputs):
        """(positional inputs, inputs by name); PyTorch takes None by name only."""
        if self._by_keyword:
            return (), {name: x for name, x in zip(self._names, inputs, strict=True) if x is not None}
        return tuple(inputs), {}

    def whole(self):
        """The arguments of step() and eval()."""
        return self._split(self._whole)

    def one_by_one(self):
        """Those of each micro-batch."""
        return [self._split(piece) for piece in self._pieces]

    def gradients(self):
        """(micro-batch or None, name, gradient), as the leaves have them after the step."""
        for i, (name, chunk) in enumerate(zip(self._names, self._chunks, strict=True)):
            if self.divided:
                yield from ((m, name, gradient_of(piece[i])) for m, piece in enumerate(self._pieces))
            elif (gradient := gradient_of(self._whole[i])) is None:
                continue
            elif self._case.whole_gradients:
                yield None, name, gradient
            else:
                pieces = torch.tensor_split(gradient, self._case.microbatches, chunk["dim"])
                yield from ((m, name, piece) for m, piece in enumerate(pieces))


def leaf(x):
    """An input of real numbers as a leaf that requires a gradient."""
    return x.clone().requires_grad_() if x is not None and x.is_floating_point() else x


def gradient_of(x):
    return None if x is None else x.grad


def is_divided(case, step):
    """Whether the micro-batches of a step are given one by one."""
    if case.is_divided:
        return True
    if case.steps[step]["kind"] != "train" or not case.json["input_gradients"] or case.whole_gradients:
        return False
    if "some_gradients" in case.givens():
        return True
    replicated = [x for x, entry in zip(case.batch_inputs(step), case.json["inputs"], strict=True) if entry["chunk"] == "replicate"]
    return any(x is not None and x.is_floating_point() for x in replicated)
