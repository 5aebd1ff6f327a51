"""One case on one rank: builds PyTorch's stages and schedule from it, executes its steps, collects its results."""

import contextlib
import itertools
import tempfile

import torch
import torch.distributed as dist
from plumbline_case.torch import load
from plumbline_case.case import shape_of
from plumbline_case.torch.modules import WholeModel
from plumbline_case.torch.optimizers import begin_states, clip_factor, norm_of, put_states, scale, share_of_norm, update
from torch.distributed import pipelining
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.microbatch import TensorChunkSpec, _Replicate

from recorder import Recorder
from routed import Routed
from support import CLASSES, SINGLE, Files, plain

DEVICE = torch.device("cpu")


class Execution:
    """`kind` is how stages are built: "manual" (PipelineStage, which infers shapes at run time), "static"
    (PipelineStage with all shapes given) or "traced" (pipeline())."""

    def __init__(self, folder, kind, delivers):
        self.case, self.files = load(folder), Files(folder)
        self.recorder = Recorder(set(delivers) & set(self.case.json["results"]), self.case)
        self.step = 0
        self.kind, self.rank = kind, dist.get_rank()
        self.own = self.files.placement()[self.rank]
        self.modules = {}
        stages = self._traced() if kind == "traced" else [self._manual(s, kind == "static") for s in self.own]
        self.has_first = 0 in self.own
        self.has_last = self.case.stages - 1 in self.own
        batches = [x for i, step in enumerate(self.case.steps) if "microbatches" in step for x in self.case.batch_inputs(i)]
        # PyTorch accepts None only as a keyword argument; and the case may require keywords.
        self.by_keyword = kind != "traced" and (self.case.json["keyword_inputs"] or any(x is None for x in batches))
        self.schedule = self._schedule(stages)
        self.optimizer_states = begin_states(self.case, self._parameters())
        if self.case.json["parameter_hooks"]:
            for key, parameter in self._parameters().items():
                if parameter.requires_grad:
                    parameter.register_hook(self.recorder.doubling(*key))

    # --- stages ---------------------------------------------------------------------------------------------------

    def _manual(self, index, static):
        module = self.modules[index] = Routed(self.case, index, self.recorder, self._weighed).train()
        shapes = self._shapes(index) if static else {}
        stage = pipelining.PipelineStage(module, index, self.case.stages, DEVICE, **shapes)
        self.recorder.watch(stage, module)
        _without_messages_to_itself(stage, self.rank)
        return stage

    def _shapes(self, index):
        """The arguments of a static stage, from one micro-batch run through the earlier stages."""
        step = self._first_step()
        train = self.case.steps[step]["kind"] == "train"
        values = [self._differentiable(x) if train else x for x in self.case.inputs(step, 0)]
        masks = self._masks(step, range(self.case.stages), 0)
        quiet = Recorder(set(), self.case)
        for s in range(index + 1):
            inputs = tuple(values)
            outputs = self.case.flat_outputs(Routed(self.case, s, quiet, lambda loss: (loss, 1)).train(train)(*inputs, **masks))
            values = [x.detach().requires_grad_(x.requires_grad) for x in outputs]
        return {"input_args": inputs, "output_args": tuple(values)}

    def _traced(self):
        step = self._first_step()
        model = Traceable(self.case, lambda stage: pipelining.pipe_split()).train()
        masks = self._masks(step, range(self.case.stages), 0)
        pipe = pipelining.pipeline(model, tuple(self.case.inputs(step, 0)), as_identifiers(masks) or None)
        stages = []
        for index in self.own:
            stage = pipe.build_stage(index, DEVICE)
            self.modules[index] = stage.submod
            self.recorder.watch(stage)
            _without_messages_to_itself(stage, self.rank)
            stages.append(stage)
        return stages

    def _first_step(self):
        return next(i for i, step in enumerate(self.case.steps) if step["kind"] in ("train", "eval"))

    def _masks(self, step, stages, microbatch):
        return {
            f"{stage}/{name}": mask
            for stage in stages
            for name, mask in self.case.masks(step, stage, microbatch).items()
        }

    # --- the schedule ---------------------------------------------------------------------------------------------

    def _schedule(self, stages):
        case = self.case
        name, microbatches = case.json["schedule"]["name"], case.microbatches
        options = {"loss_fn": self._loss, "scale_grads": case.json["gradients"]["divide_by"] != 1}
        specs = {
            entry["name"]: _Replicate() if entry["chunk"] == "replicate" else TensorChunkSpec(entry["chunk"]["dim"])
            for entry in case.json["inputs"]
        }
        if self.by_keyword and not plain(case.json):
            options["kwargs_chunk_spec"] = specs
        elif not plain(case.json):
            options["args_chunk_spec"] = tuple(specs.values())
        if name in SINGLE:
            return getattr(schedules, CLASSES[name])(stages[0], microbatches, **options)
        if name in CLASSES:
            schedule = getattr(schedules, CLASSES[name])(stages, microbatches, **options)
            order = [[str(a) for a in schedule.pipeline_order[r] if a is not None] for r in range(len(self.files.rows))]
            if order == self.files.rows:
                return schedule
        schedule = schedules._PipelineScheduleRuntime(stages, microbatches, **options)
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.writelines(",".join(cell for cell in row if _computes(cell)) + "\n" for row in self.files.rows)
            file.flush()
            schedule._load_csv(file.name)
        return schedule

    def _loss(self, output, target):
        """The user's loss function: divides, adds the losses of early stages, scales."""
        loss = self.case.loss(output, target, self.step)
        return loss if self._loss_weight() == 1 else loss * self._loss_weight()

    def _loss_weight(self):
        """The loss scale: support.py declines cases whose micro-batches weigh differently."""
        return self.case.steps[self.step]["microbatches"][0].get("loss_weight", 1)

    def _weighed(self, loss):
        """A loss of an early stage, as it is a result, and the gradient from which its backward begins."""
        return self.case.divided(loss, self.step), self._loss_weight()

    # --- steps ----------------------------------------------------------------------------------------------------

    def run(self):
        for number, step in enumerate(self.case.steps):
            self.recorder.begin(number)
            self.step = number
            if step["kind"] in ("train", "eval"):
                self._batch(number, step)
            elif step["kind"] == "zero_grad":
                for parameter in self._parameters().values():
                    parameter.grad = None
            elif step["kind"] == "optimizer":
                self._update()
            elif step["kind"] == "read":
                for name, gradient in self._gradients().items():
                    self.recorder.put("grad", None, None, name, gradient)
            else:
                for (_, name), parameter in self._parameters().items():
                    if name in step["parameters"]:
                        parameter.requires_grad_(step["kind"] == "unfreeze")
            if number == len(self.case.steps) - 1:
                self._state()
            self.recorder.end()

    def _batch(self, number, step):
        train = step["kind"] == "train"
        for module in self.modules.values():
            if isinstance(module, Routed):
                module.train(train)
                module.form = self.case.program["programs"][step["microbatches"][0]["program"]]
        args, keywords = self._inputs(number, train), self._whole_masks(number)
        if self.by_keyword:
            keywords |= {name: x for name, x in args.items() if x is not None}
            args = {}
        if self.has_last:
            keywords |= {"losses": (losses := [])}
            if step["loss"]:
                keywords["target"] = self._target(number)
        with contextlib.nullcontext() if train else torch.no_grad():
            merges = self._output_rows(step)
            outputs = (self.schedule.step if train else self.schedule.eval)(*args.values(), **keywords, return_outputs=bool(merges))
        if self.has_last:
            for m, loss in enumerate(losses):
                self.recorder.put("loss", None, m, "loss", loss / self._loss_weight())
            self._outputs(outputs, merges)
        if train:
            # Cases that update parameters leave these to read steps.
            for name, gradient in self._gradients().items() if self.case.json["optimizer"] is None else ():
                self.recorder.put("grad", None, None, name, gradient)
            if self.case.json["parameter_hooks"]:
                for (stage, name), parameter in self._parameters().items():
                    if parameter.grad is not None:
                        self.recorder.hook_calls(stage, name, self.case.microbatches)
            if self.case.json["boundary_hooks"]:
                for stage, module in self.modules.items():
                    for name in module.hooked():
                        self.recorder.hook_calls(stage, name, self.case.microbatches)

    def _inputs(self, step, train):
        """{name: whole batch} on the rank of the first stage."""
        inputs = dict(zip([e["name"] for e in self.case.json["inputs"]], self.case.batch_inputs(step), strict=True))
        if train:
            inputs = {name: self._differentiable(x) for name, x in inputs.items()}
        return inputs if self.has_first else {}

    def _differentiable(self, x):
        """An input of a training step: a leaf that requires a gradient if the case requires it."""
        wanted = self.case.json["input_gradients"] and x is not None and x.is_floating_point()
        return x.clone().requires_grad_() if wanted else x

    def _whole_masks(self, step):
        """Masks as keywords for the whole batch, which the schedule divides again."""
        if self.kind == "traced":
            stages = range(self.case.stages) if self.has_first else ()
        else:
            stages = self.own
        pieces = [self._masks(step, stages, m) for m in range(self.case.microbatches)]
        whole = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
        return as_identifiers(whole) if self.kind == "traced" else whole

    def _target(self, step):
        """PyTorch requires a target for every loss: an unused one if the case has none."""
        target = self.case.batch_target(step)
        if target is None and self.case.json["loss"]["kind"] in ("sum", "output"):
            return torch.zeros(self.case.microbatches)
        return target

    def _output_rows(self, step):
        """Rows of each micro-batch, by output: used to split PyTorch's merged outputs. Empty if PyTorch cannot merge
        them (scalars): then the stage's outputs are recorded instead."""
        programs = [self.case.program["programs"][m["program"]]["stages"][-1] for m in step["microbatches"]]
        shapes = [[shape_of(p, output) for output in p["outputs"]] for p in programs]
        if any(not shape for of_one in shapes for shape in of_one):
            return []
        return [[of_one[i][0] for of_one in shapes] for i in range(len(shapes[0]))]

    def _outputs(self, outputs, rows):
        if not rows:
            return
        # By position, as in Recorder.watch.
        for name, whole, of_one in zip(self.case.output_names(), self.case.flat_outputs(outputs), rows, strict=False):
            ends = list(itertools.accumulate(of_one[:-1]))  # a surplus or deficit shows in the last one
            for m, tensor in enumerate(torch.tensor_split(whole, ends)):
                self.recorder.put("output", None, m, name, tensor)

    # --- parameters -----------------------------------------------------------------------------------------------

    def _parameters(self):
        """{(stage, canonical name): parameter} of this rank."""
        return {
            (index, name): parameter
            for index, module in self.modules.items()
            for name, parameter in getattr(module, "stage", module).named_parameters()
        }

    def _gradients(self):
        """{name: gradient} as the optimizer sees them. PyTorch leaves the sum over a shared parameter's copies to its
        user: they are added in ascending order of stages. Every rank that has a copy gets the sum."""
        gradients = {key: p.grad for key, p in self._parameters().items() if p.grad is not None}
        shared = {p["name"] for p in self.case.program["parameters"] if len(p["stages"]) > 1}
        if shared:
            of_ranks = [None] * dist.get_world_size()
            dist.all_gather_object(of_ranks, {key: g for key, g in gradients.items() if key[1] in shared})
            copies = sorted(item for part in of_ranks for item in part.items())
        sums = {}
        for (_, name), gradient in (copies if shared else []):
            sums[name] = gradient if name not in sums else sums[name] + gradient
        own_names = {name for _, name in self._parameters()}
        return {name: g for (_, name), g in gradients.items() if name not in shared} | {
            name: g for name, g in sums.items() if name in own_names
        }

    def _update(self):
        """PyTorch's pipelining knows no optimizer: all that is of several stages is this user's."""
        options, gradients = self.case.json["optimizer"], self._gradients()
        if options.get("skip_nonfinite") and not self._finite(gradients.values()):
            return
        if "loss_scale" in options:
            self._change(gradients, lambda gradient: gradient.div_(options["loss_scale"]))
        if "clip" in options:
            norm = self._norm(gradients, options["clip"]["norm"])
            self.recorder.put("grad-norm", None, None, "norm", torch.tensor(norm, dtype=torch.float64))
            if (factor := clip_factor(norm, options["clip"])) is not None:
                self._change(gradients, lambda gradient: scale(gradient, factor))
        for key, parameter in self._parameters().items():
            if key[1] in gradients:
                update([parameter], gradients[key[1]], self.optimizer_states[key], self.case.json["optimizer"])

    def _change(self, gradients, change):
        """Changes in place what the optimizer sees and what later steps add to: the same tensors, but for shared parameters."""
        own = [p.grad for p in self._parameters().values() if p.grad is not None]
        for gradient in {id(g): g for g in [*gradients.values(), *own]}.values():
            change(gradient)

    def _norm(self, gradients, kind):
        """The norm over all ranks: an all-reduce of each parameter's share, on which the rank of its first stage decides."""
        names = sorted(p["name"] for p in self.case.program["parameters"])
        first = {p["name"]: min(p["stages"]) for p in self.case.program["parameters"]}
        shares = torch.zeros(len(names), dtype=torch.float64)
        for i, name in enumerate(names):
            if first[name] in self.own and name in gradients:
                shares[i] = share_of_norm(gradients[name], kind)
        dist.all_reduce(shares)
        return norm_of(dict(zip(names, shares.tolist(), strict=True)), kind)

    @staticmethod
    def _finite(gradients):
        """Whether those of all ranks are."""
        nonfinite = torch.tensor(sum(not gradient.isfinite().all() for gradient in gradients))
        dist.all_reduce(nonfinite)
        return int(nonfinite) == 0

    def _state(self):
        for index, module in self.modules.items():
            root = getattr(module, "stage", module)
            canonical = {b["name"] for b in self.case.program["buffers"]}
            for name, buffer in root.named_buffers():
                if name in canonical:
                    self.recorder.put("buffer", None, None, name, buffer)
        for (_, name), parameter in self._parameters().items():
            self.recorder.put("param", None, None, name, parameter)
        put_states(self.recorder.put, self.optimizer_states)


def as_identifiers(masks):
    """Masks under names that can be arguments of generated code: "STAGE/NAME" cannot."""
    return {f"mask{i}": masks[name] for i, name in enumerate(sorted(masks))}


class Traceable(WholeModel):
    """The whole model, its masks named as above."""

    def forward(self, *inputs, **masks):
        form = self._case.program["programs"][0]["stages"]
        names = sorted(f"{s}/{e['name']}" for s, stage in enumerate(form) for e in stage["inputs"] if e["from"] == "mask")
        return super().forward(*inputs, **{name: masks[f"mask{i}"] for i, name in enumerate(names)})


def _computes(cell):
    """Whether PyTorch lowers this schedule itself: it has no transfers."""
    return "SEND" not in cell and "RECV" not in cell


def _without_messages_to_itself(stage, rank):
    """PyTorch 2.11 begins with a message to every neighbour, even on the same rank (V-shaped schedules): gloo rejects
    those, so they are omitted. NCCL supports them; nothing else depends on them."""
    if not hasattr(stage, "_get_init_p2p_neighbors_ops"):
        return
    operations = stage._get_init_p2p_neighbors_ops
    stage._get_init_p2p_neighbors_ops = lambda: [op for op in operations() if op.group_peer != rank]
