"""One case on one rank: builds PyTorch's stages and schedule from it, executes its steps, collects its results."""

import contextlib
import itertools
import tempfile

import torch
import torch.distributed as dist
from plumbline_case.torch import load
from plumbline_case.case import shape_of
from plumbline_case.torch.modules import WholeModel
from plumbline_case.torch.unchanged import unchanged
from torch.distributed import pipelining
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.microbatch import TensorChunkSpec, _Replicate

from given import Given, leaf
from order import check_order
from parameters import Parameters, share
from recorder import Recorder
from replicas import Replicas, part, whole
from routed import Routed
from support import CLASSES, SINGLE, Files, before_batches, plain



class Execution:
    """`backend` is the adapter. Its `stages` are how stages are built: "manual" (PipelineStage, which infers shapes at run
    time), "static" (PipelineStage with all shapes given) or "traced" (pipeline()). `alone`: without the adapter's help. `reentrant`: the kind of
    torch.utils.checkpoint that recomputes."""

    def __init__(self, folder, backend):
        case = load(folder)
        self.replicas = Replicas(case, backend.timeout)
        self.case = case.of_replica(self.replicas.number)
        self.files = Files(self.case)
        kinds = set(backend.delivers) & set(self.case.json["results"])
        self.recorder = Recorder(kinds, self.case, self.replicas.loss_factor())
        self.step = 0
        self.kind, self.alone, self.reentrant = backend.stages, backend.alone, backend.reentrant
        self.own = self.files.placement()[self.replicas.rank]
        self.modules = {}
        self.loss = None  # the module of the loss function's parameters, which PyTorch's user keeps apart from the stages
        stages = self._traced() if self.kind == "traced" else self._manual()
        roots = {s: getattr(m, "stage", m) for s, m in self.modules.items()}
        own_loss = {self.case.stages - 1: self.loss} if self.loss and self.case.stages - 1 in self.own else {}
        self.parameters = Parameters(self.case, [*roots.items(), *own_loss.items()], self.replicas, self.alone)
        self.has_first = 0 in self.own
        self.has_last = self.case.stages - 1 in self.own
        steps = [i for i, step in enumerate(self.case.steps) if "microbatches" in step]
        # An input that is None is so for every micro-batch of a step.
        batches = [x for i in steps for x in self.case.inputs(i, 0)]
        # PyTorch accepts None only as a keyword argument; and the case may require keywords.
        self.by_keyword = self.kind != "traced" and (self.case.json["keyword_inputs"] or any(x is None for x in batches))
        self.schedule = self._schedule(stages)
        for _, name, parameter in self.parameters.all():
            if parameter.requires_grad and self.case.json["parameter_hooks"]:
                parameter.register_hook(self.recorder.doubling(name))
            if parameter.requires_grad and self.case.json.get("accumulation_hooks"):
                parameter.register_post_accumulate_grad_hook(self.recorder.after_accumulation(name))

    # --- stages ---------------------------------------------------------------------------------------------------

    def _manual(self):
        self.modules = {s: Routed(self.case, s, self.recorder, self._weighed, self.reentrant).train() for s in self.own}
        share([module.stage for module in self.modules.values()])
        if self.case.stages - 1 in self.modules:
            self.loss = self.modules[self.case.stages - 1].stage.take_loss()
        for step in before_batches(self.case):
            self._freeze(step, [*itertools.chain(*(module.stage.named_parameters() for module in self.modules.values()))])
        return [self._stage(s, module) for s, module in self.modules.items()]

    def _stage(self, index, module):
        options = self._shapes(index) if self.kind == "static" else {}
        if module.stage.weight_closures:
            options["dw_builder"] = module.stage.weight_closures.take
        replicated = self.replicas.replicated(module, index)
        stage = pipelining.PipelineStage(replicated, index, self.case.stages, torch.get_default_device(), group=self.replicas.pipeline, **options)
        if self.case.json["recompute"] == "except-last":
            stage.register_forward_context(module.told)
        self.recorder.watch(stage, module)
        self._without_messages_to_itself(stage)
        return stage

    def _shapes(self, index):
        """The arguments of a static stage: what it takes and makes of a micro-batch that went through the model."""
        step = self._first_step()
        train = self.case.steps[step]["kind"] == "train"
        needed = self.case.needs_gradients(step, 0)
        values = [leaf(x) if needed else x for x in self.case.inputs(step, 0)]
        masks = self._masks(step, range(self.case.stages), 0)
        quiet = Recorder(set(), self.case)
        for s in range(index + 1):
            inputs = tuple(values)
            values = self.case.flat_outputs(Routed(self.case, s, quiet, lambda loss: (loss, 1)).train(train)(*inputs, **masks))
        return {"input_args": inputs, "output_args": tuple(values)}

    def _traced(self):
        step = self._first_step()
        model = Traceable(self.case, lambda stage: pipelining.pipe_split()).train()
        self.loss = model.take_loss()
        masks = self._masks(step, range(self.case.stages), 0)
        with unchanged([model]):
            pipe = pipelining.pipeline(model, tuple(self.case.inputs(step, 0)), as_identifiers(masks) or None)
        stages = []
        for index in self.own:
            stage = pipe.build_stage(index, torch.get_default_device())
            self.modules[index] = stage.submod
            self.recorder.watch(stage)
            self._without_messages_to_itself(stage)
            stages.append(stage)
        return stages

    def _first_step(self):
        """The first step that trains, or else the first one: a user takes a micro-batch of the training."""
        steps = [i for i, step in enumerate(self.case.steps) if "microbatches" in step]
        return next((i for i in steps if self.case.steps[i]["kind"] == "train"), steps[0])

    def _without_messages_to_itself(self, stage):
        """PyTorch 2.11 begins with a message to every neighbour, even on the same rank (V-shaped schedules): gloo rejects
        those, so they are omitted. NCCL supports them; nothing else depends on them."""
        if self.alone or not hasattr(stage, "_get_init_p2p_neighbors_ops"):
            return
        operations = stage._get_init_p2p_neighbors_ops
        stage._get_init_p2p_neighbors_ops = lambda: [op for op in operations() if op.peer != dist.get_rank()]

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
            check_order(schedule, self.files.rows)
            return schedule
        schedule = schedules._PipelineScheduleRuntime(stages, microbatches, **options)
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.writelines(",".join(cell for cell in row if _computes(cell)) + "\n" for row in self.files.rows)
            file.flush()
            schedule._load_csv(file.name)
        return schedule

    def _loss(self, output, target):
        """The user's loss function: divides, adds the losses of early stages, scales."""
        parameters = dict(self.loss.named_parameters()) if self.loss else None
        loss = self.case.loss(output, target, self.step, parameters)
        return loss if self._loss_weight() == 1 else loss * self._loss_weight()

    def _loss_weight(self):
        """The loss scale, times what undoes the average over replicas: support.py declines cases whose micro-batches weigh
        differently."""
        return self.case.steps[self.step]["microbatches"][0].get("loss_weight", 1) * self.replicas.loss_factor()

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
                for _, _, parameter in self.parameters.all():
                    parameter.grad = None
            elif step["kind"] == "optimizer":
                self.parameters.update(lambda norm: self.recorder.put("grad-norm", None, None, "norm", norm))
            elif step["kind"] == "read":
                self._gradients()
            else:
                self._freeze(step, [key[1:] for key in self.parameters.all()])
            if number == len(self.case.steps) - 1:
                self._state()
            self.recorder.end()
        return self.recorder.results

    def _freeze(self, step, parameters):
        """A step that freezes or unfreezes some of these (name, parameter); others change nothing."""
        for name, parameter in parameters:
            if name in step.get("parameters", ()):
                parameter.requires_grad_(step["kind"] == "unfreeze")

    def _batch(self, number, step):
        train = step["kind"] == "train"
        for module in self.modules.values():
            if isinstance(module, Routed):
                module.train(train)
                module.begin([self.case.program["programs"][m["program"]] for m in step["microbatches"]])
        given = Given(self.case, number, self.by_keyword) if self.has_first else None
        if self.case.is_divided or given and given.divided:
            args, keywords = (), self._one_by_one(number, given)
        else:
            args, keywords = given.whole() if given else ((), {})
            keywords |= self._whole_masks(number) | ({"target": self._target(number)} if self._has_target(step) else {})
        if self.has_last:
            keywords |= {"losses": (losses := [])}
        # DDP and FSDP have parameters and hooks of their own.
        users = [module.stage for module in self.modules.values() if isinstance(module, Routed)] * (self.replicas.count == 1)
        with contextlib.nullcontext() if train else torch.no_grad(), unchanged(users):
            merges = self._output_rows(step)
            asked = bool(merges) or self.alone
            self.recorder.outputs_of_stages = not asked
            outputs = (self.schedule.step if train else self.schedule.eval)(*args, **keywords, return_outputs=asked)
        if self.has_last:
            for m, loss in enumerate(losses):
                self.recorder.put("loss", None, m, "loss", loss / self._loss_weight())
            self._outputs(outputs, merges)
        if train:
            for m, name, gradient in given.gradients() if given else ():
                self.recorder.put("input-grad", None, m, name, gradient)
            if self.case.json["optimizer"] is None:  # cases that update parameters leave these to read steps
                self._gradients()
            self._hook_calls()

    def _one_by_one(self, step, given):
        """The arguments of a step whose user has divided the batch."""
        inputs = given.one_by_one() if given else [((), {})] * self.case.microbatches
        masks = [self._masks(step, self.own, m) for m in range(self.case.microbatches)]
        divided = {
            "arg_mbs": [args for args, _ in inputs],
            "kwarg_mbs": [keywords | masks[m] for m, (_, keywords) in enumerate(inputs)],
        }
        if self._has_target(self.case.steps[step]):
            divided["target_mbs"] = self._targets(step)
        return divided

    def _gradients(self):
        for name, gradient in self.parameters.whole_gradients().items():
            self.recorder.put("grad", None, None, name, gradient)

    def _hook_calls(self):
        if self.case.json["parameter_hooks"] or self.case.json.get("accumulation_hooks"):
            for stage, name in self.recorder.called():
                self.recorder.hook_calls(stage, name, self.case.microbatches)
        if self.case.json["boundary_hooks"]:
            for stage, module in self.modules.items():
                for name in module.hooked():
                    self.recorder.hook_calls(stage, name, self.case.microbatches)

    def _whole_masks(self, step):
        """Masks as keywords for the whole batch, which the schedule divides again."""
        if self.kind == "traced":
            stages = range(self.case.stages) if self.has_first else ()
        else:
            stages = self.own
        pieces = [self._masks(step, stages, m) for m in range(self.case.microbatches)]
        whole = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
        return as_identifiers(whole) if self.kind == "traced" else whole

    def _has_target(self, step):
        return self.has_last and step["loss"]

    def _targets(self, step):
        """Those of a batch that is given one by one."""
        if self.case.is_divided and self.case.steps[step]["target"]:
            return [self.case.target(step, m) for m in range(self.case.microbatches)]
        return list(torch.tensor_split(self._target(step), self.case.microbatches))

    def _target(self, step):
        """PyTorch requires a target for every loss: an unused one if the case has none."""
        target = self.case.batch_target(step) if self.case.steps[step]["target"] else None
        if target is None and not self.alone and self.case.json["loss"]["kind"] in ("sum", "output"):
            return torch.zeros(self.case.microbatches)
        return target

    def _output_rows(self, step):
        """Rows of each micro-batch, by output: used to split PyTorch's merged outputs. Empty if PyTorch cannot merge
        them (scalars, sequences of several lengths): then the stage's outputs are recorded instead."""
        programs = [self.case.program["programs"][m["program"]]["stages"][-1] for m in step["microbatches"]]
        shapes = [[shape_of(p, output) for output in p["outputs"]] for p in programs]
        if self.case.is_divided or any(not shape for of_one in shapes for shape in of_one):
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

    def _state(self):
        for module in self.modules.values():
            root = getattr(module, "stage", module)
            canonical = {b["name"] for b in self.case.program["buffers"]}
            for name, buffer in root.named_buffers():
                if name in canonical:
                    self.recorder.put("buffer", None, None, name, buffer)
        for _, name, parameter in self.parameters.all():
            self.recorder.put("param", None, None, name, whole(part(parameter), parameter))
        self.parameters.put_states(self.recorder.put)


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
