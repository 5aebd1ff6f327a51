"""A stage as one of DualPipe's two modules on a rank: it only knows its neighbours, and forwards values for other stages."""

import torch
from dualpipe.utils import run_backward
from plumbline_case.torch.local_loss import LocalLoss
from support import crossing
from torch import nn


class Stage(nn.Module):
    """Stage `index` of a case for one of the two directions. It takes the tensors that cross the border before it, in the
    order of crossing(), and returns those that cross the one after it.

    DualPipe does not pass a micro-batch's number: the module counts its forwards, which come in the order of the
    micro-batches, from the direction's first one on.
    """

    def __init__(self, case, index, first, recorder, weighed):
        """weighed(loss, micro-batch): a loss of this stage as a result, and the gradient from which its backward begins."""
        super().__init__()
        self.stage, self.index = case.stage(index), index
        self._case, self._first, self._recorder, self._weighed = case, first, recorder, weighed
        self._last = index == case.stages - 1

    def begin(self, step, puts_outputs):
        """Before each train and eval step. `puts_outputs`: whether the model's outputs are recorded here."""
        self._step, self._next, self._puts_outputs = step, self._first, puts_outputs
        program = self._case.step_program(step, self._first)
        self._takes = None if self.index == 0 else [b["name"] for b in crossing(program, self.index)]
        self._gives = [b["name"] for b in crossing(program, self.index + 1)]
        self._with_gradient = {b["name"] for b in program["boundaries"] if b["has_gradient"]}

    def forward(self, *args):
        microbatch, self._next = self._next, self._next + 1
        if self._takes is None:
            inputs, passing = args, {}
        else:
            passing = dict(zip(self._takes, args, strict=True))
            inputs = [self._received(name, passing.get(name), microbatch) for name in self.stage.input_names()]
        outputs = self.stage(*inputs, **self._case.masks(self._step, self.index, microbatch))
        flat = self._with_losses(list(self._case.flat_outputs(outputs)), microbatch)
        for value in flat:
            if value is not None and value.requires_grad:
                # The first thing in this micro-batch's backward.
                value.register_hook(lambda _: self._recorder.backward_begins(self.index, microbatch))
        if self._last:
            for name, value in zip(self._case.output_names(), flat, strict=True) if self._puts_outputs else ():
                self._recorder.put("output", None, microbatch, name, value)
            return tuple(flat)
        made = dict(zip(self.stage.output_names(), flat, strict=True))
        for name, value in made.items():
            self._recorder.put("forward", self.index, microbatch, name, value)
        # A copy of what is only forwarded: DualPipe frees what it has sent.
        return tuple(made[name] if name in made else passing[name].clone() for name in self._gives)

    def _with_losses(self, flat, microbatch):
        """Adds this stage's own losses to the backward of the first output that has one."""
        names = self.stage.output_names()
        carrier = next((i for i, name in enumerate(names) if self._last or name in self._with_gradient), None)
        for name, made in self.stage.local_losses.items():
            loss, weight = self._weighed(made, microbatch)
            self._recorder.put("loss", None, microbatch, name, loss)
            if loss.requires_grad:
                # A copy, since DualPipe accepts no view.
                flat[carrier] = LocalLoss.apply(flat[carrier], loss, weight).clone()
        return flat

    def _received(self, name, x, microbatch):
        """The tensor that this stage uses; for a forwarded value, a view whose gradient is this stage's share."""
        if x is None or not x.requires_grad or not torch.is_grad_enabled() or name not in self._with_gradient:
            return x
        if self._case.json["boundary_hooks"]:
            x.register_hook(lambda _: self._recorder.call(self.index, microbatch, name))
        if name in self._gives:
            own = x.view_as(x)
            own.register_hook(lambda gradient: self._recorder.put("backward", self.index, microbatch, name, gradient))
            return own
        # DualPipe sends x.grad.
        x.register_post_accumulate_grad_hook(
            lambda leaf: self._recorder.put("backward", self.index, microbatch, name, leaf.grad)
        )
        return x

    def hooked(self):
        """The boundaries on which this stage's forward registers hooks, in a case with `boundary_hooks`."""
        return [name for name in self.stage.input_names() if name in self._with_gradient] if self._takes is not None else []


class OverlappedStage(Stage):
    """With the method in which a user overlaps the forward of one direction with the backward of the other. This one
    executes them one after the other, as DualPipe's own does: what differs is DualPipe's part around it."""

    @classmethod
    def overlaped_forward_backward(cls, module0, inputs0, criterion0, labels0, module1, loss1, outputs1, output_grads1):
        outputs0 = module0(*inputs0)
        loss0 = None if criterion0 is None else criterion0(*outputs0, *labels0)
        if loss1 is None:
            run_backward(outputs1, output_grads1)
        else:
            loss1.backward()
            loss1.detach_()
        return outputs0, loss0
