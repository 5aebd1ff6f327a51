"""One case on one rank: builds DualPipe's two modules from it, executes its steps, collects its results."""

import contextlib

import torch
import torch.distributed as dist
from dualpipe_cpu import dual_pipe
from dualpipe import set_p2p_tensor_dtype, set_p2p_tensor_shapes
from plumbline_case.case import shape_of
from plumbline_case.torch import load
from plumbline_case.torch.optimizers import begin_states, clip_factor, norm_of, put_states, scale, share_of_norm, update
from plumbline_case.torch.tensors import DTYPES
from recorder import Recorder
from stages import OverlappedStage, Stage
from support import batch_dimension, crossing


class Execution:
    def __init__(self, folder, overlapped, delivers):
        self.case = load(folder)
        self.recorder = Recorder(set(delivers) & set(self.case.json["results"]))
        rank, last = dist.get_rank(), dist.get_world_size() - 1
        half = self.case.microbatches // 2
        # Direction 0 goes from rank 0 to the last one with the first half of the micro-batches, direction 1 the other way
        # with the second half.
        self.halves = (range(half), range(half, self.case.microbatches))
        self.feeds, self.ends = {0: 0, last: 1}.get(rank), {last: 0, 0: 1}.get(rank)
        kind = OverlappedStage if overlapped else Stage
        self.modules = tuple(
            kind(self.case, stage, microbatches[0], self.recorder, self._weighed)
            for stage, microbatches in zip((rank, last - rank), self.halves, strict=True)
        )
        self.batch_dim = batch_dimension(self.case)
        self.dual_pipe = dual_pipe(self.modules, batch_dim=self.batch_dim)
        self.step = 0
        self.settled = {}  # gradients that the optimizer has unscaled and clipped
        self.optimizer_states = begin_states(self.case, [key[:2] for key in self._parameters()])
        if self.case.json["parameter_hooks"]:
            for module in self.modules:
                for name, parameter in module.stage.named_parameters():
                    if parameter.requires_grad:
                        parameter.register_hook(self.recorder.doubling(module.index, name))

    def _weighed(self, loss, microbatch):
        """A loss of an early stage, as it is a result, and the gradient from which its backward begins."""
        step = self.case.steps[self.step]
        weight = self.case.loss_weight(self.step, microbatch) if step["kind"] == "train" else 1
        return self.case.divided(loss, self.step), weight

    # --- steps ----------------------------------------------------------------------------------------------------

    def run(self):
        for number, step in enumerate(self.case.steps):
            self.recorder.begin(number)
            self.step = number
            if step["kind"] in ("train", "eval"):
                self._batch(step)
            elif step["kind"] == "zero_grad":
                self.settled = {}
                for _, _, parameter in self._parameters():
                    parameter.grad = None
            elif step["kind"] == "optimizer":
                self._update()
            elif step["kind"] == "read":
                self._put_gradients()
            else:
                for _, name, parameter in self._parameters():
                    if name in step["parameters"]:
                        parameter.requires_grad_(step["kind"] == "unfreeze")
            if number == len(self.case.steps) - 1:
                self._state()
        return self.recorder.results

    def _batch(self, step):
        train = step["kind"] == "train"
        program = self.case.step_program(self.step, 0)
        border = crossing(program, 1)
        set_p2p_tensor_shapes([tuple(b["shape"]) for b in border])
        set_p2p_tensor_dtype(DTYPES[border[0]["dtype"]])
        wants_outputs = not train and self._joinable(program)
        for module in self.modules:
            module.begin(self.step, puts_outputs=not wants_outputs)
        self.dual_pipe.train(train)
        inputs = self._inputs(train)
        with contextlib.nullcontext() if train else torch.no_grad():
            losses, outputs = self.dual_pipe.step(
                *inputs,
                num_chunks=self.case.microbatches,
                criterion=self._loss if step["loss"] else None,
                labels=self._labels(train),
                return_outputs=wants_outputs,
            )
        if self.ends is not None:
            for m, loss in zip(self.halves[self.ends], losses if step["loss"] else (), strict=step["loss"]):
                weight = self.case.loss_weight(self.step, m) if train else 1
                self.recorder.put("loss", None, m, "loss", loss if weight == 1 else loss / weight)
            if wants_outputs:
                self._outputs(outputs)
        if train:
            self._put_input_gradients(inputs)
            self._after_training()

    def _after_training(self):
        # Cases that update parameters leave their gradients to read steps.
        if self.case.json["optimizer"] is None:
            self._put_gradients()
        for module, microbatches in zip(self.modules, self.halves, strict=True):
            if self.case.json["parameter_hooks"]:
                for name, parameter in module.stage.named_parameters():
                    if parameter.grad is not None:
                        self.recorder.put_calls(module.index, name, microbatches)
            if self.case.json["boundary_hooks"]:
                for name in module.hooked():
                    self.recorder.put_calls(module.index, name, microbatches)

    def _half(self, whole, direction):
        return None if whole is None else whole.tensor_split(2, dim=self.batch_dim)[direction]

    def _inputs(self, train):
        """The half of the batch that begins on this rank."""
        if self.feeds is None:
            return ()
        halves = [self._half(x, self.feeds) for x in self.case.batch_inputs(self.step)]
        wanted = train and self.case.json["input_gradients"]
        return [x.clone().requires_grad_() if wanted and x is not None and x.is_floating_point() else x for x in halves]

    def _put_input_gradients(self, inputs):
        """The rows of each micro-batch in the gradients that DualPipe left in the user's tensors."""
        if self.feeds is None:
            return
        microbatches = self.halves[self.feeds]
        for entry, x in zip(self.case.json["inputs"], inputs, strict=True):
            if x is not None and x.grad is not None:
                for m, gradient in zip(microbatches, x.grad.tensor_split(len(microbatches), self.batch_dim), strict=True):
                    self.recorder.put("input-grad", None, m, entry["name"], gradient)

    def _labels(self, train):
        """What belongs to the half that ends on this rank: its targets, and as another label the weights of its losses."""
        step = self.case.steps[self.step]
        if self.ends is None or not step["loss"]:
            return []
        target = self.case.batch_target(self.step)
        labels = [] if target is None else [self._half(of_output, self.ends) for of_output in self.case.flat_targets(target)]
        weights = [self.case.loss_weight(self.step, m) if train else 1 for m in self.halves[self.ends]]
        return [*labels, torch.tensor(weights, dtype=torch.float64).reshape([1] * self.batch_dim + [-1])]

    def _loss(self, *outputs_and_labels):
        """The user's loss function: divides, adds the losses of early stages, scales."""
        *outputs, weight = outputs_and_labels
        target = None
        if self.case.batch_target(self.step) is not None:
            count = len(self.case.compared_outputs())
            target, outputs = self.case.nested_targets(outputs[-count:]), outputs[:-count]
        (last,) = (m for m in self.modules if m.index == self.case.stages - 1)
        loss = self.case.loss(tuple(outputs), target, self.step, last.stage.loss_parameters())
        return loss if weight.item() == 1 else loss * weight.item()

    def _joinable(self, program):
        """Whether DualPipe can join the outputs of micro-batches: it cannot join scalars. Then the modules' are recorded."""
        form = program["stages"][-1]
        shapes = [shape_of(form, entry) for entry in form["outputs"] if entry["to"] == "model"]
        return all(shape is None or len(shape) > self.batch_dim for shape in shapes)

    def _outputs(self, outputs):
        microbatches = self.halves[self.ends]
        for name, whole in zip(self.case.output_names(), self.case.flat_outputs(outputs), strict=True):
            if whole is not None:
                for m, tensor in zip(microbatches, whole.tensor_split(len(microbatches), dim=self.batch_dim), strict=True):
                    self.recorder.put("output", None, m, name, tensor)

    # --- parameters -----------------------------------------------------------------------------------------------

    def _parameters(self):
        """(stage, canonical name, parameter) of this rank's two stages."""
        return [(m.index, name, parameter) for m in self.modules for name, parameter in m.stage.named_parameters()]

    def _gradients(self):
        """{name: gradient} of all parameters as the optimizer sees them. DualPipe leaves the sum over the two replicas, and
        over a shared parameter's copies, to its user: added by ascending stage and replica."""
        own = [
            (module.index, direction, name, parameter.grad)
            for direction, module in enumerate(self.modules)
            for name, parameter in module.stage.named_parameters()
            if parameter.grad is not None
        ]
        of_ranks = [None] * dist.get_world_size()
        dist.all_gather_object(of_ranks, own)
        sums = {}
        for _, _, name, gradient in sorted((one for part in of_ranks for one in part), key=lambda one: one[:3]):
            sums[name] = sums[name] + gradient if name in sums else gradient
        divisor = self.case.json["gradients"]["divide_by"]
        if divisor != 1:
            sums = {name: gradient / divisor for name, gradient in sums.items()}
        return self.settled | {
            name: self.settled[name] + gradient if name in self.settled else gradient for name, gradient in sums.items()
        }

    def _put_gradients(self):
        names = {name for _, name, _ in self._parameters()}
        for name, gradient in self._gradients().items():
            if name in names:
                self.recorder.put("grad", None, None, name, gradient)

    def _update(self):
        options, gradients = self.case.json["optimizer"], self._gradients()
        if options.get("skip_nonfinite") and not all(gradient.isfinite().all() for gradient in gradients.values()):
            return
        if "loss_scale" in options:
            for gradient in gradients.values():
                gradient.div_(options["loss_scale"])
        if "clip" in options:
            kind = options["clip"]["norm"]
            norm = norm_of({name: share_of_norm(gradient, kind) for name, gradient in gradients.items()}, kind)
            self.recorder.put("grad-norm", None, None, "norm", torch.tensor(norm, dtype=torch.float64))
            if (factor := clip_factor(norm, options["clip"])) is not None:
                for gradient in gradients.values():
                    scale(gradient, factor)
        for stage, name, parameter in self._parameters():
            if name in gradients:
                update([parameter], gradients[name], self.optimizer_states[stage, name], options)
        if "loss_scale" in options or "clip" in options:
            self.settled = gradients
            for _, _, parameter in self._parameters():
                parameter.grad = None

    def _state(self):
        canonical = {b["name"] for b in self.case.program["buffers"]}
        for module in self.modules:
            for name, buffer in module.stage.named_buffers():
                if name in canonical:
                    self.recorder.put("buffer", None, None, name, buffer)
        for _, name, parameter in self._parameters():
            self.recorder.put("param", None, None, name, parameter)
        put_states(self.recorder.put, self.optimizer_states)
