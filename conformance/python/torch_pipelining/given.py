"""What a step is given, as a user of PyTorch gives it, and the gradients that PyTorch leaves in the inputs."""

import torch


class Given:
    """The inputs of one step. In a case with `input_gradients` they are leaves, and their gradients are read from them.

    A batch is given whole: PyTorch divides it, and the rows of a leaf's gradient are those of the micro-batches. An input
    that every micro-batch gets whole would have one gradient for all of them: with such a one the micro-batches are
    given one by one (arg_mbs), each with leaves of its own.
    """

    def __init__(self, case, step, by_keyword):
        self._case = case
        self._train = case.steps[step]["kind"] == "train"
        self._by_keyword = by_keyword
        self._names = [entry["name"] for entry in case.json["inputs"]]
        self._chunks = [entry["chunk"] for entry in case.json["inputs"]]
        self.divided = self._train and shares_leaves(case.json, case.batch_inputs(step))
        if self.divided:
            self._pieces = [self._leaves(case.inputs(step, m)) for m in range(case.microbatches)]
        else:
            self._whole = self._leaves(case.batch_inputs(step))

    def _leaves(self, inputs):
        return [leaf(self._case.json, x) if self._train else x for x in inputs]

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
        """(micro-batch, name, gradient), as the leaves have them after the step."""
        for i, (name, chunk) in enumerate(zip(self._names, self._chunks, strict=True)):
            if self.divided:
                yield from ((m, name, gradient_of(piece[i])) for m, piece in enumerate(self._pieces))
            elif (gradient := gradient_of(self._whole[i])) is not None:
                pieces = torch.tensor_split(gradient, self._case.microbatches, chunk["dim"])
                yield from ((m, name, piece) for m, piece in enumerate(pieces))


def leaf(case, x):
    """An input of a training step: a leaf that requires a gradient if the case requires it."""
    wanted = case["input_gradients"] and x is not None and x.is_floating_point()
    return x.clone().requires_grad_() if wanted else x


def gradient_of(x):
    return None if x is None else x.grad


def shares_leaves(case, inputs):
    """Whether an input whose gradient is wanted is one leaf for all micro-batches."""
    replicated = [x for x, entry in zip(inputs, case["inputs"], strict=True) if entry["chunk"] == "replicate"]
    return case["input_gradients"] and any(x is not None and x.is_floating_point() for x in replicated)
