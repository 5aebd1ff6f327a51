"""A naive GPipe on torch.distributed, checked by plumbline: the example to copy for an engine whose ranks talk over gloo.

usage: plumbline-case run --backend gloo_gpipe.py:GPipe      in a Python with torch
"""

import torch
import torch.distributed as dist
from plumbline_case.torch import Results, load
from plumbline_case.torch_distributed import GlooBackend


class Engine:
    """Stands for yours: a stage a rank; every micro-batch forward, then every micro-batch backward."""

    def __init__(self, stage, rank, ranks):
        self.stage, self.rank = stage, rank
        self.first, self.last = rank == 0, rank == ranks - 1

    def step(self, inputs, received, order, loss_of, weights):
        """The losses, on the last rank. `received`: the shape of what the rank before sends, for each micro-batch."""
        runs = []
        for m, given in enumerate(inputs):
            if not self.first:
                given = [torch.empty(received[m])]
                dist.recv(given[0], self.rank - 1)
                given[0].requires_grad_()
            made = self.stage(*given)
            if self.last:
                made = loss_of(m, made)
            else:
                dist.send(made.detach().contiguous(), self.rank + 1)
            runs.append((given, made))
        for m in order:
            given, made = runs[m]
            gradient = torch.full_like(made, weights[m])
            if not self.last:
                dist.recv(gradient, self.rank + 1)
            made.backward(gradient)
            if not self.first:
                dist.send(given[0].grad.contiguous(), self.rank - 1)
        return [made.detach() for _, made in runs] if self.last else []


class GPipe(GlooBackend):
    name, version, schedules = "GPipe on torch.distributed", "1", ("gpipe",)
    steps, dtypes = ("train",), ("F32",)
    delivers = ("loss", "grad")

    def why_not(self, case):
        program = case.program["programs"][0]
        sent = [(b["producer"], b["consumers"], b["dtype"], b["has_gradient"]) for b in program["boundaries"]]
        is_chain = sent == [(s, [s + 1], "F32", True) for s in range(case.stages - 1)]
        is_shared = any(len(parameter["stages"]) > 1 for parameter in case.program["parameters"])
        return super().why_not(case) or (
            "several steps" if len(case.steps) > 1
            else "stages that hand on anything but one F32 value with a gradient" if not is_chain
            else "a parameter of several stages" if is_shared
            else "random layers" if any("/mask/" in name for name in case.tensors)
            else None
        )  # fmt: skip

    def prepare(self, case):
        case = load(case.folder)  # the same case, with tensors of torch
        return case, Engine(case.stage(self.rank), self.rank, self.world_size)

    def run(self, case, prepared):
        case, engine = prepared
        microbatches, results = range(case.microbatches), Results()
        inputs = [case.inputs(0, m) for m in microbatches]
        received = [self.received(case, m) for m in microbatches]
        order = case.backward_order(self.rank)[0]
        weights = [case.loss_weight(0, m) for m in microbatches]
        for m, loss in enumerate(engine.step(inputs, received, order, lambda m, y: case.loss(y, case.target(0, m), 0), weights)):
            results.put(0, "loss", None, m, "loss", loss)
        for name, parameter in engine.stage.named_parameters():
            if parameter.grad is not None:
                results.put(0, "grad", None, None, name, parameter.grad / case.json["gradients"]["divide_by"])
        return results

    def received(self, case, microbatch):
        """The shape of the value that comes from the rank before; None on the first one."""
        boundaries = case.step_program(0, microbatch)["boundaries"]
        return next((b["shape"] for b in boundaries if self.rank in b["consumers"]), None)


if __name__ == "__main__":
    GPipe().main()
