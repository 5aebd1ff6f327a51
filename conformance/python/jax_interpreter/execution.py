"""Executes a case: one process acts as all ranks, each of which executes its row of schedule.csv in order."""

import jax.numpy as jnp
import numpy as np
from case_arrays import Case, Recorder
from copies import copies_of
from hooks import Hooks
from numerics import quotient
from optimizer import all_finite, clip_factor, multiplied, norm_of, updated
from schedule import computations
from stage import Forward, Sources


class Execution:
    def __init__(self, folder):
        self.case = Case(folder)
        self.rows = [computations(row) for row in self.case.schedule()]
        self.copies = copies_of(self.case, self.rows)
        self.trained = {p["name"] for p in self.case.program["parameters"] if p["requires_grad"]}
        self.gradients = {}  # by parameter, over all steps since zero_grad
        saved = self.case.optimizer_state()
        self.states = {p["name"]: saved.get(p["name"], {}) for p in self.case.program["parameters"]}
        self.hooks = Hooks(self.case)
        self.recorder = Recorder(len(self.rows))

    # --- steps --------------------------------------------------------------------------------------------------------

    def run(self):
        for number, step in enumerate(self.case.steps):
            kind = step["kind"]
            if kind in ("train", "eval"):
                self.batch(number, kind == "train")
            elif kind == "zero_grad":
                self.gradients = {}
            elif kind == "optimizer":
                self.update(number)
            elif kind == "freeze":
                self.trained -= set(step["parameters"])
            elif kind == "unfreeze":
                self.trained |= set(step["parameters"])
            else:
                self.put_gradients(number)
        self.put_state(len(self.case.steps) - 1)
        return self.recorder.of_rank

    def put(self, rank, step, kind, *key_and_array):
        """Kinds that the case lacks are left out."""
        if kind in self.case.json["results"]:
            self.recorder.put(rank, step, kind, *key_and_array)

    def parameters(self):
        """Yields (rank, name, array): a parameter once for each rank, which may have it in several stages."""
        found = {}
        for copy in self.copies.values():
            for name, x in copy.parameters().items():
                if (copy.rank, name) not in found:
                    found[copy.rank, name] = x
                    yield copy.rank, name, x
                elif np.asarray(x).tobytes() != np.asarray(found[copy.rank, name]).tobytes():
                    raise ValueError(f"the copies of {name} on rank {copy.rank} differ")

    def put_gradients(self, step):
        for rank, name in dict.fromkeys((copy.rank, name) for copy in self.copies.values() for name in copy.shapes):
            if name in self.gradients:
                self.put(rank, step, "grad", None, None, name, self.gradients[name])

    def put_state(self, step):
        for copy in self.copies.values():
            for name, x in copy.buffers.items():
                self.put(copy.rank, step, "buffer", None, None, name, x)
        for rank, name, x in self.parameters():
            self.put(rank, step, "param", None, None, name, x)
            for entry, state in self.states[name].items():
                self.put(rank, step, "optimizer-state", None, None, f"{name}/{entry}", state)

    def update(self, step):
        options = self.case.json["optimizer"]
        if options.get("skip_nonfinite") and not all_finite(self.gradients):
            return
        if "loss_scale" in options:
            self.gradients = {name: quotient(g, options["loss_scale"]) for name, g in self.gradients.items()}
        if clip := options.get("clip"):
            norm = norm_of(self.gradients, clip["norm"])
            for rank in range(len(self.rows)):
                self.put(rank, step, "grad-norm", None, None, "norm", np.float64(norm))
            if (factor := clip_factor(norm, clip)) is not None:
                self.gradients = multiplied(self.gradients, factor)
        for name, gradient in self.gradients.items():
            state = self.states[name]
            wholes = [(copy, copy.whole(name)) for copy in self.copies.values() if name in copy.shapes]
            for copy, whole in wholes:
                parameter, self.states[name] = updated(whole, gradient, state, options)
                copy.keep(name, parameter)

    # --- one batch ----------------------------------------------------------------------------------------------------

    def batch(self, step, training):
        self.forwards, self.crossing = {}, {}  # by (stage, micro-batch); by (boundary, micro-batch)
        self.sent_back = {}  # by (boundary, micro-batch): {consumer: gradient}
        self.left = {}  # by (stage, micro-batch): the gradients of the roots, from I to W
        self.parts = {}  # by (stage, micro-batch): those of its backward
        rows = [[[action for action in group if training or action.part == "F"] for group in row] for row in self.rows]
        for row in rows:
            for group in row:
                for stage, part, microbatch in group:
                    if part != "F":
                        self.parts[stage, microbatch] = self.parts.get((stage, microbatch), "") + part
        self.follow(rows, step)
        if training:
            self.accumulate(step)

    def follow(self, rows, step):
        """Each rank executes its next action as soon as those on which it depends are done."""
        rows = [[list(group) for group in row if group] for row in rows]
        while any(rows):
            progress = False
            for rank, row in enumerate(rows):
                while row and (ready := [action for action in row[0] if self.is_ready(action, step)]):
                    self.execute(rank, ready[0], step)
                    row[0].remove(ready[0])
                    if not row[0]:
                        row.pop(0)
                    progress = True
            if not progress:
                raise ValueError(f"schedule.csv: every rank waits for another: {[row[0] for row in rows if row]}")

    def is_ready(self, action, step):
        stage, part, m = action
        boundaries = self.case.step_program(step, m)["boundaries"]
        if part == "F":
            return all((b["name"], m) in self.crossing for b in boundaries if stage in b["consumers"])
        if part == "W":
            return (stage, m) in self.left
        made = [b for b in boundaries if b["producer"] == stage and b["has_gradient"]]
        return (stage, m) in self.forwards and all(
            set(b["consumers"]) == self.sent_back.get((b["name"], m), {}).keys() for b in made
        )

    def execute(self, rank, action, step):
        stage, part, microbatch = action
        copy = self.copies[rank, stage]
        if part == "F":
            self.forward(copy, step, microbatch)
            return
        forward = self.forwards[stage, microbatch]
        if part != "W":
            self.left[stage, microbatch] = self.arrived(step, stage, microbatch)
        weights, inputs = forward.pull(part, self.left[stage, microbatch])
        if part != "W":
            self.send_back(copy, step, microbatch, forward, inputs)
        if part != "I":
            self.add_up(copy, step, microbatch, weights)
        if part == self.parts[stage, microbatch][-1]:
            del self.forwards[stage, microbatch], self.left[stage, microbatch]

    def forward(self, copy, step, m):
        case, stage = self.case, copy.stage
        inputs = dict(zip([e["name"] for e in case.json["inputs"]], case.inputs(step, m))) if stage == 0 else {}
        boundaries = {name: x for (name, microbatch), x in self.crossing.items() if microbatch == m}
        given = Sources(inputs, boundaries, case.masks(step, stage, m), copy.parameters(), dict(copy.buffers))
        parts, recomputed = self.parts.get((stage, m), ""), self.is_recomputed(m)
        forward = Forward(case, step, stage, m, given, self.trained, self.hooks, parts, recomputed)
        if parts:
            self.forwards[stage, m] = forward
        copy.buffers |= forward.made.buffers
        for name, x in forward.made.outputs.items():
            if stage + 1 < case.stages:
                self.crossing[name, m] = x
                self.put(copy.rank, step, "forward", stage, m, name, x)
            else:
                self.put(copy.rank, step, "output", None, m, name, x)
        for name, loss in forward.made.losses.items():
            self.put(copy.rank, step, "loss", None, m, name, loss)

    def is_recomputed(self, microbatch):
        last = microbatch + 1 == self.case.microbatches
        return {"never": False, "except-last": not last, "always": True}[self.case.json["recompute"]]

    def arrived(self, step, stage, m):
        """The gradients of the boundaries that the stage makes: summed from the last consumer to the first."""
        sums = {}
        for b in self.case.step_program(step, m)["boundaries"]:
            if b["producer"] == stage and b["has_gradient"]:
                shares = self.sent_back.pop((b["name"], m))
                first, *more = sorted(shares, reverse=True)
                sums[b["name"]] = shares[first]
                for consumer in more:
                    sums[b["name"]] = sums[b["name"]] + shares[consumer]
        return sums

    def send_back(self, copy, step, m, forward, gradients):
        stage = copy.stage
        for entry in forward.form["inputs"]:
            name = entry["name"]
            if entry["value"] is None or not forward.wants_gradient(entry):
                continue
            if entry["from"] == "model":
                if name in gradients:
                    self.put(copy.rank, step, "input-grad", None, m, name, gradients[name])
                continue
            share = gradients[name] if name in gradients else jnp.zeros_like(self.crossing[name, m])
            self.sent_back.setdefault((name, m), {})[stage] = share
            self.put(copy.rank, step, "backward", stage, m, name, share)
            if self.case.json["boundary_hooks"]:
                self.put(copy.rank, step, "hook-calls", stage, m, name, np.int64(self.hooks.taken(stage, name)))

    def add_up(self, copy, step, m, gradients):
        for name, gradient in gradients.items():
            copy.sums[name] = copy.sums[name] + gradient if name in copy.sums else gradient
        for name, sum_so_far in copy.sums.items():
            self.put(copy.rank, step, "partial", copy.stage, m, name, sum_so_far)
            if self.case.json["parameter_hooks"]:
                self.put(copy.rank, step, "hook-calls", copy.stage, m, name, np.int64(self.hooks.taken(copy.stage, name)))

    def accumulate(self, step):
        """Sums the copies by ascending stage, then rank, divides, and adds to the gradients of earlier steps."""
        totals = {}
        for copy in self.copies.values():
            for name, share in copy.sums.items():
                totals[name] = totals[name] + share if name in totals else share
            copy.sums = {}
        divisor = self.case.json["gradients"]["divide_by"]
        for name, total in totals.items():
            total = quotient(total, divisor)
            self.gradients[name] = self.gradients[name] + total if name in self.gradients else total
        if self.case.json["optimizer"] is None:  # else only read steps deliver them
            self.put_gradients(step)
