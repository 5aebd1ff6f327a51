"""The pipeline of adapter.py: GPipe over mpi4py and torch, a stage a rank."""

import torch
from mpi4py import MPI
from plumbline_case.case import outputs_of
from plumbline_case.torch import Results, load, separate_gradients


class Rank:
    """Rank s runs stage s: every micro-batch forward, then every micro-batch backward."""

    def __init__(self, folder):
        self.comm, self.case, self.results = MPI.COMM_WORLD, load(folder), Results()
        self.me = self.comm.rank
        self.stage, self.sent = self.case.stage(self.me), []

    def run(self):
        for number, step in enumerate(self.case.steps):
            if step["kind"] == "zero_grad":
                self.stage.zero_grad()
            elif step["kind"] != "read":
                self.batch(number, step["kind"] == "train")
            if step["kind"] in ("train", "read"):
                for name, p in self.stage.named_parameters():
                    if p.grad is not None:
                        self.results.put(number, "grad", None, None, name, p.grad)
        for kind, owned in ("buffer", self.stage.named_buffers()), ("param", self.stage.named_parameters()):
            for name, tensor in owned:
                self.results.put(len(self.case.steps) - 1, kind, None, None, name, tensor)
        MPI.Request.waitall(self.sent)  # the requests keep what is sent
        return self.results

    def batch(self, step, train):
        MPI.Request.waitall(self.sent)
        self.stage.train(train)
        earlier = {name: p.grad for name, p in self.stage.named_parameters()}
        self.stage.zero_grad()
        with torch.set_grad_enabled(train):
            runs = [self.forward(step, m, train) for m in range(self.case.microbatches)]
        for m in self.case.backward_order(self.me)[0] if train else ():
            self.backward(step, m, *runs[m])
        self.sum_copies()
        for name, p in self.stage.named_parameters():
            new = None if p.grad is None else p.grad / self.case.json["gradients"]["divide_by"]
            p.grad = new if earlier[name] is None else earlier[name] if new is None else earlier[name] + new

    def forward(self, step, m, train):
        form = self.case.step_program(step, m)
        boundaries = {b["name"]: b for b in form["boundaries"]}
        given, taken = self.case.inputs(step, m) if self.me == 0 else [], {}
        for name, value in [(e["name"], e["value"]) for e in form["stages"][self.me]["inputs"] if e["from"] == "boundary"]:
            if value is not None:
                x = self.comm.recv(source=boundaries[name]["producer"], tag=list(boundaries).index(name))
                taken[name] = x.requires_grad_(train and boundaries[name]["has_gradient"])
            given.append(taken.get(name))
        outputs = self.case.flat_outputs(self.stage(*given, **self.case.masks(step, self.me, m)))
        losses = {name: self.case.divided(loss, step) for name, loss in self.stage.local_losses.items()}
        for entry, value in zip(outputs_of(form["stages"][self.me]), outputs, strict=True):
            if value is None:
                continue
            kind, stage = ("output", None) if entry["to"] == "model" else ("forward", self.me)
            self.results.put(step, kind, stage, m, entry["name"], value)
            for consumer in boundaries[entry["name"]]["consumers"] if entry["to"] == "boundary" else ():
                self.send(value.detach(), consumer, list(boundaries).index(entry["name"]))
        if self.me == self.case.stages - 1 and self.case.has_loss(step):
            losses = {"loss": self.case.loss(outputs, self.case.target(step, m), step)} | losses
        for name, loss in losses.items():
            self.results.put(step, "loss", None, m, name, loss)
        return form, taken, outputs, list(losses.values())

    def backward(self, step, m, form, inputs, outputs, losses):
        boundaries = {b["name"]: b for b in form["boundaries"]}
        roots, gradients = [], []
        for entry, value in zip(outputs_of(form["stages"][self.me]), outputs, strict=True):
            if entry["to"] == "boundary" and value is not None and boundaries[entry["name"]]["has_gradient"]:
                tag = list(boundaries).index(entry["name"])
                shares = [self.comm.recv(source=c, tag=tag) for c in reversed(boundaries[entry["name"]]["consumers"])]
                roots.append(value)
                gradients.append(sum(shares[1:], start=shares[0]))
        for loss in losses:
            if loss.requires_grad:
                roots.append(loss)
                gradients.append(torch.full_like(loss, self.case.loss_weight(step, m)))
        if any(root.requires_grad for root in roots):
            torch.autograd.backward(roots, gradients)
        separate_gradients(self.stage)
        for name, x in inputs.items():
            if boundaries[name]["has_gradient"]:
                gradient = torch.zeros_like(x) if x.grad is None else x.grad
                self.results.put(step, "backward", self.me, m, name, gradient)
                self.send(gradient, boundaries[name]["producer"], list(boundaries).index(name))

    def send(self, tensor, rank, tag):
        self.sent.append(self.comm.isend(tensor, dest=rank, tag=tag))

    def sum_copies(self):
        """Sums over the stages that have a copy of the parameter, in ascending order."""
        shared = {p["name"] for p in self.case.program["parameters"] if len(p["stages"]) > 1}
        copies = self.comm.allgather({n: p.grad for n, p in self.stage.named_parameters() if n in shared})
        for name, parameter in self.stage.named_parameters():
            shares = [copy[name] for copy in copies if copy.get(name) is not None] if name in shared else []
            if shares:
                parameter.grad = sum(shares[1:], start=shares[0])
