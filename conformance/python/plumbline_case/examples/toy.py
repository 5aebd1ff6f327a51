"""A backend to begin with: NumPy, one process, stage after stage. It runs the op graphs of simple cases.

plumbline-case example my_backend.py
plumbline-case run --backend my_backend.py:Toy           # the first PASS
plumbline-case run --backend my_backend.py:WrongScale    # the first FAIL: a planted bug
"""

import numpy as np

from plumbline_case import Backend, Results


# --- operators: each returns its value, and the function from its gradient to those of its arguments ------------------
def linear(input, weight, bias):
    def backward(g):
        rows = g.reshape(-1, g.shape[-1])
        inner = rows.T @ input.reshape(-1, input.shape[-1])
        return {"input": g @ weight, "weight": inner, "bias": rows.sum(0)}

    return input @ weight.T + (0 if bias is None else bias), backward


def add(self, other, alpha):
    return self + alpha * other, lambda g: {"self": reduced(g, self), "other": reduced(alpha * g, other)}


def mul(self, other):
    return self * other, lambda g: {"self": reduced(g * other, self), "other": reduced(g * self, other)}


def relu(self):
    return np.maximum(self, 0), lambda g: {"self": g * (self > 0)}


def absolute(self):
    return np.abs(self), lambda g: {"self": g * np.sign(self)}


def reshape(self, shape):
    return self.reshape(shape), lambda g: {"self": g.reshape(self.shape)}


def total(self, dim, keepdim):
    def backward(g):
        return {"self": np.broadcast_to(g if keepdim else np.expand_dims(g, tuple(dim)), self.shape)}

    return self.sum(tuple(dim) or None, keepdims=keepdim), backward


def reduced(g, like):
    """The gradient of a broadcast argument: summed over the dimensions that it was repeated along."""
    shape = np.shape(like)
    g = g.sum(tuple(range(g.ndim - len(shape))))
    return g.sum(tuple(d for d, n in enumerate(shape) if n == 1), keepdims=True)


OPERATORS = {
    "aten::linear": linear,
    "aten::add.Tensor": add,
    "aten::mul.Tensor": mul,
    "aten::relu": relu,
    "aten::abs": absolute,
    "aten::reshape": reshape,
    "aten::sum.dim_IntList": total,
}


def loss_of(loss, y, target):
    """The loss of a micro-batch, and its gradient with respect to y."""
    value, slope = (y, np.ones_like(y)) if loss["kind"] == "sum" else ((y - target) ** 2, 2 * (y - target))
    parts = y.dtype.type(y.size if loss["reduction"] == "mean" else 1)
    return value.sum() / parts, slope / parts


# --- the pipeline -----------------------------------------------------------------------------------------------------
class Engine:
    def __init__(self, case, divisor):
        self.case, self.divisor, self.results = case, divisor, Results()
        self.parameters = {name: x for s in range(case.stages) for name, x in case.parameters(s).items()}
        self.buffers = {name: x for s in range(case.stages) for name, x in case.buffers(s).items()}
        self.gradients = {}  # by parameter name, over all steps since zero_grad

    def run(self):
        for number, step in enumerate(self.case.steps):
            if step["kind"] == "zero_grad":
                self.gradients = {}
            elif step["kind"] == "read":
                self.put_gradients(number)
            else:
                self.batch(number, step["kind"] == "train")
        for kind, tensors in ("buffer", self.buffers), ("param", self.parameters):
            for name, x in tensors.items():
                self.results.put(len(self.case.steps) - 1, kind, None, None, name, x)
        return self.results

    def batch(self, step, train):
        sums = {}  # of this step, by parameter name: over stages and micro-batches
        for m in range(self.case.microbatches):
            crossing = {}  # values between stages
            tapes = [self.forward(step, m, s, crossing) for s in range(self.case.stages)]
            sent = self.losses(step, m, [values for values, _ in tapes])
            for s in reversed(range(self.case.stages)) if train else ():
                self.backward(step, m, s, *tapes[s], sent, sums)
        for name, g in sums.items():
            self.gradients[name] = self.gradients.get(name, 0) + g / g.dtype.type(self.divisor)
        if train:
            self.put_gradients(step)

    def put_gradients(self, step):
        for name, g in self.gradients.items():
            self.results.put(step, "grad", None, None, name, g)

    def losses(self, step, m, values):
        """The losses of a micro-batch, from each stage's values. Returns {output: gradient} for those they are made from."""
        form, divisor = self.case.json["loss"], self.case.loss_divisor(step)
        weight = (0 if self.case.steps[step]["kind"] == "eval" else self.case.loss_weight(step, m)) / divisor
        made, sent = {}, {}  # by name: the model's outputs, and the losses that stay in a stage

        def put(name, loss):
            self.results.put(step, "loss", None, m, name, loss / loss.dtype.type(divisor))

        for s, of_stage in enumerate(values):
            for e in self.case.stage_program(step, s, m)["outputs"]:
                if e["to"] != "boundary" and e["value"] is not None:
                    made[e["name"]] = of_stage[e["value"]]
                if e["to"] == "loss":
                    put(e["name"], made[e["name"]])
                    sent[e["name"]] = np.full_like(made[e["name"]], weight)
        if self.case.has_loss(step):
            first = self.case.output_names()[0]
            loss, slope = loss_of(form, made[first], self.case.target(step, m))
            sent[first] = slope * slope.dtype.type(weight)
            for name in form.get("added", ()):
                loss, sent[name] = loss + made[name], np.full_like(made[name], weight)
            put("loss", loss)
        return sent

    def forward(self, step, m, s, crossing):
        """Runs a stage; returns its values by number, and a list of (node, backward)."""
        form, masks = self.case.stage_program(step, s, m), self.case.masks(step, s, m)
        inputs = dict(zip([e["name"] for e in self.case.json["inputs"]], self.case.inputs(step, m)))
        sources = {"model": inputs, "boundary": crossing, "mask": masks}
        given = [(e["value"], sources[e["from"]].get(e["name"])) for e in form["inputs"]]
        given += [(e["value"], self.parameters[e["name"]]) for e in form["parameters"]]
        given += [(e["value"], self.buffers[e["name"]]) for e in form["buffers"]]
        given += [(e["value"], self.case.tensors[e["tensor"]]) for e in form["constants"]]
        values, tape = {number: x for number, x in given if number is not None}, []
        for node in form["nodes"]:
            arguments = {n: values[a["value"]] if isinstance(a, dict) else a for n, a in node["arguments"].items()}
            values[node["results"][0]], backward = OPERATORS[node["op"]](**arguments)
            tape.append((node, backward))
        for e in form["buffer_updates"]:
            self.buffers[e["name"]] = values[e["value"]]
        for e in form["outputs"]:
            if e["value"] is not None:
                crossing[e["name"]] = values[e["value"]]
                if e["to"] != "loss":
                    kind, stage = ("output", None) if e["to"] == "model" else ("forward", s)
                    self.results.put(step, kind, stage, m, e["name"], crossing[e["name"]])
        return values, tape

    def backward(self, step, m, s, values, tape, sent, sums):
        """`sent`: the gradients of the stage's outputs by name, to which it adds its shares of its inputs' gradients."""
        form = self.case.stage_program(step, s, m)
        slopes = {}  # by number of value
        for e in form["outputs"]:
            add_to(slopes, e["value"], sent.get(e["name"]))
        for node, backward in reversed(tape):
            if node["results"][0] in slopes:
                shares = backward(slopes[node["results"][0]])
                for name, argument in node["arguments"].items():
                    if isinstance(argument, dict):
                        add_to(slopes, argument["value"], shares[name])
        trained = {p["name"] for p in self.case.program["parameters"] if p["requires_grad"]}
        for e in form["parameters"]:
            if e["name"] in trained:
                add_to(sums, e["name"], slopes.get(e["value"]))
        boundaries = {b["name"] for b in self.case.step_program(step, m)["boundaries"] if b["has_gradient"]}
        for e in form["inputs"]:
            if e["name"] in boundaries and e["value"] is not None:
                share = slopes.get(e["value"], np.zeros_like(values[e["value"]]))
                self.results.put(step, "backward", s, m, e["name"], share)
                add_to(sent, e["name"], share)


def add_to(sums, key, x):
    if x is not None:
        sums[key] = sums[key] + x if key in sums else x


class Toy(Backend):
    name = "toy in NumPy"
    delivers = ("forward", "output", "loss", "backward", "grad", "buffer", "param")
    operators, losses, dtypes = OPERATORS, ("sum", "mse"), ("F32",)
    steps = ("train", "eval", "zero_grad", "read")
    extras = ("loss_divisor", "added", "local_losses")

    def prepare(self, case):
        return Engine(case, case.json["gradients"]["divide_by"])

    def run(self, case, prepared):
        return prepared.run()


class WrongScale(Toy):
    """A planted bug: gradients are divided by the number of micro-batches once too often."""

    def prepare(self, case):
        return Engine(case, case.json["gradients"]["divide_by"] * case.microbatches)


if __name__ == "__main__":
    Toy().main()
