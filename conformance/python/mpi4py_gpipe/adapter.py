"""A naive GPipe over mpi4py and torch, checked by plumbline: the example to copy. See conformance/INTERPRETING.md.

usage: adapter.py describe | plan --job J | run --job J --out D        (run: under mpirun, a stage a rank)
"""

import argparse
import importlib.metadata
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def describe():
    return {"protocol": 1, "name": "GPipe on mpi4py", "version": "1", "schedules": ["gpipe"], "level": "stage",
            "delivers": ["forward", "output", "loss", "backward", "grad", "buffer", "param"],
            "libtorch": importlib.metadata.version("torch").split("+")[0]}


def why_not(case):
    if other := {step["kind"] for step in case["steps"]} - {"train", "eval", "zero_grad"}:
        return f"no {' and no '.join(sorted(other))} steps"
    if case["input_gradients"] or case["parameter_hooks"] or case["boundary_hooks"]:
        return "no gradients of inputs, no hooks"
    return None


def plan(job, folder):
    for one in job["cases"]:
        with open(os.path.join(folder, one["folder"], "case.json"), encoding="utf-8") as file:
            reason = why_not(json.load(file))
        yield {"id": one["id"], "schedule": one["schedule"], "supported": not reason} | ({"why": reason} if reason else {})


class Rank:
    """Rank s runs stage s: every micro-batch forward, then every micro-batch backward."""

    def __init__(self, comm, case):
        self.comm, self.case, self.results, self.me = comm, case, Results(), comm.rank
        self.stage, self.sent = case.stage(self.me), []

    def run(self):
        for number, step in enumerate(self.case.steps):
            self.stage.zero_grad() if step["kind"] == "zero_grad" else self.batch(number, step["kind"] == "train")
        for kind, owned in ("buffer", self.stage.named_buffers()), ("param", self.stage.named_parameters()):
            for name, tensor in owned:
                self.results.put(len(self.case.steps) - 1, kind, None, None, name, tensor)
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
            if train and p.grad is not None:
                self.results.put(step, "grad", None, None, name, p.grad)

    def forward(self, step, m, train):
        form = self.case.program["programs"][self.case.steps[step]["microbatches"][m]["program"]]
        boundaries = {b["name"]: b for b in form["boundaries"]}
        given, taken, loss = self.case.inputs(step, m) if self.me == 0 else [], {}, None
        for name, value in [(e["name"], e["value"]) for e in form["stages"][self.me]["inputs"] if e["from"] == "boundary"]:
            if value is not None:
                x = self.comm.recv(source=boundaries[name]["producer"], tag=list(boundaries).index(name))
                taken[name] = x.requires_grad_(train and boundaries[name]["has_gradient"])
            given.append(taken.get(name))
        outputs = self.case.flat_outputs(self.stage(*given, **self.case.masks(step, self.me, m)))
        for entry, value in zip(form["stages"][self.me]["outputs"], outputs, strict=True):
            if value is None:
                continue
            kind, stage = ("output", None) if entry["to"] == "model" else ("forward", self.me)
            self.results.put(step, kind, stage, m, entry["name"], value)
            for consumer in boundaries[entry["name"]]["consumers"] if entry["to"] == "boundary" else ():
                self.send(value.detach(), consumer, list(boundaries).index(entry["name"]))
        if self.me == self.case.stages - 1 and self.case.has_loss(step):
            loss = self.case.loss(outputs[0], self.case.target(step, m))
            self.results.put(step, "loss", None, m, "loss", loss)
        return form, taken, outputs, loss

    def backward(self, step, m, form, inputs, outputs, loss):
        boundaries = {b["name"]: b for b in form["boundaries"]}
        roots, gradients = [], []
        if self.me == self.case.stages - 1:
            roots, gradients = [loss], [torch.full_like(loss, self.case.loss_weight(step, m))]
        for entry, value in zip(form["stages"][self.me]["outputs"], outputs, strict=True):
            if entry["to"] == "boundary" and value is not None and boundaries[entry["name"]]["has_gradient"]:
                tag = list(boundaries).index(entry["name"])
                shares = [self.comm.recv(source=c, tag=tag) for c in reversed(boundaries[entry["name"]]["consumers"])]
                roots.append(value)
                gradients.append(sum(shares[1:], start=shares[0]))
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


def run(comm, job, folder, out):
    say = print if comm.rank == 0 else lambda line, flush: None
    for number, one in enumerate(job["cases"]):
        say(f"@plumbline case {number} begins", flush=True)
        results = Rank(comm, load(os.path.join(folder, one["folder"]))).run()
        results.write(os.path.join(out, f"{one['results']}{comm.rank}.safetensors"))
        comm.barrier()
        say(f"@plumbline case {number} done", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("describe", "plan", "run"))
    for option in ("--job", "--out"):
        parser.add_argument(option)
    options = parser.parse_args()
    if options.verb == "describe":
        sys.exit(print(json.dumps(describe())))
    with open(options.job, encoding="utf-8") as file:
        job, folder = json.load(file), os.path.dirname(os.path.abspath(options.job))
    if options.verb == "plan":
        sys.exit(print(json.dumps(list(plan(job, folder)))))
    import torch
    from mpi4py import MPI
    from plumbline_case import Results, load, separate_gradients

    run(MPI.COMM_WORLD, job, folder, options.out)
