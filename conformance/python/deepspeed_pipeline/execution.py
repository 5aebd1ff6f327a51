"""One case on one rank: builds DeepSpeed's engine from it, executes its steps, collects its results."""

from deepspeed_cpu import Unchanged, set_up  # before deepspeed  # isort: skip
import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule
from deepspeed.runtime import engine as base_engine
from deepspeed.runtime.pipe import schedule

from recorder import Recorder
from stage import Layer, Loss, Shared, layers_of, passing

CLIP = base_engine.clip_grad_norm_


class Execution:
    def __init__(self, whole, delivers):
        # DeepSpeed's own topology: the replicas of a stage have ranks in a row.
        self.index, replica = divmod(dist.get_rank(), whole.replicas)
        self.case = case = whole.of_replica(replica)
        # DeepSpeed averages over replicas, also where the case has their sum.
        self.summed_over = 1 if case.averages_replicas else whole.replicas
        self.recorder = Recorder(delivers & set(case.json["results"]), case.first_microbatch)
        self.last = self.index == case.stages - 1
        self.layer = Layer(case, self.index, self.recorder, self._weighed)
        self.loss = self.layer.stage.take_loss()  # its parameters, which DeepSpeed's user keeps in the loss function
        self.engine = self._engine()
        self.parameters = self._named_parameters()
        self._resume()
        self.gradients = {}  # of the last train step, as the optimizer sees them
        if case.json["parameter_hooks"]:
            for name, parameter in self.parameters.items():
                if parameter.requires_grad:
                    parameter.register_hook(self.recorder.doubling(self.index, name))

    # --- the engine -----------------------------------------------------------------------------------------------

    def _engine(self):
        case = self.case
        set_up(self.index)
        module = PipelineModule(
            layers_of(case, self.index, self.layer),
            num_stages=case.stages,
            loss_fn=Loss(self.loss, self._loss) if self.loss else self._loss,
            partition_method="uniform",
            dynamic_shape=self._shapes_change(),
        )
        options = case.json["optimizer"] or {}
        config = {
            "train_micro_batch_size_per_gpu": 1,  # informs DeepSpeed's statistics only
            "gradient_accumulation_steps": case.microbatches,
            "steps_per_print": None,
            "gradient_clipping": options["clip"]["max"] if "clip" in options else 0.0,
        }
        self.optimizer = optimizer = optimizer_of(options, [{"params": list(module.parameters())}])
        engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=config, dist_init_required=False)
        if "grad-norm" in case.json["results"]:
            base_engine.clip_grad_norm_ = self._clip
        self.recorder.watch(engine, schedule.ForwardPass)
        self.recorder.watch(engine, schedule.BackwardPass, after=self._after_backward)
        self.recorder.watch(engine, schedule.OptimizerStep, before=self._before_update)
        optimizer.register_step_pre_hook(lambda *_: self._keep_gradients())
        return engine

    def _shapes_change(self):
        """Whether what crosses the borders differs between micro-batches or steps."""
        shapes = set()
        for step in self.case.steps:
            for microbatch in step.get("microbatches", []):
                form = self.case.program["programs"][microbatch["program"]]
                by_name = {b["name"]: (b["dtype"], *b["shape"]) for b in form["boundaries"]}
                shapes.add(tuple(tuple((n, by_name[n]) for n in passing(form, s)) for s in range(self.case.stages - 1)))
        return len(shapes) > 1

    def _named_parameters(self):
        """{canonical name: parameter} of this rank's stage."""
        shared = [p["name"] for p in self.case.program["parameters"] if len(p["stages"]) > 1]
        tied = {f"shared{number}": name for number, name in enumerate(shared)}
        modules = self.engine.module.tied_modules.items()
        assert all(isinstance(module, Shared) for _, module in modules)
        own = dict(self.layer.stage.named_parameters()) | {tied[key]: module.weight for key, module in modules}
        return own | self._loss_parameters()

    def _loss_parameters(self):
        return dict(self.loss.named_parameters()) if self.loss else {}

    def _resume(self):
        """Gives the optimizer the state that another run saved, as torch's load_state_dict() does."""
        for name, state in self.case.optimizer_state().items():
            if name in self.parameters:
                self.optimizer.state[self.parameters[name]] = {
                    entry: tensor.float() if entry == "step" else tensor.clone() for entry, tensor in state.items()
                }

    # --- losses ---------------------------------------------------------------------------------------------------

    def _loss(self, outputs, labels):
        """The user's loss function: divides, adds the losses of early stages, weighs; DeepSpeed divides by the number of
        micro-batches."""
        weight, *targets = labels
        step = self.recorder.step
        loss = self.case.loss(outputs, self.case.nested_targets(targets or [None]), step, self._loss_parameters())
        self.recorder.put("loss", None, self.recorder.microbatch, "loss", loss)
        factor = weight.item() * self.case.microbatches / self._divided_by()
        return loss if factor == 1 or self.case.steps[step]["kind"] == "eval" else loss * factor

    def _weighed(self, loss):
        """A loss of an early stage, as it is a result, and the gradient from which its backward begins."""
        step, microbatch = self.recorder.step, self.recorder.microbatch
        return self.case.divided(loss, step), self._weight(step, microbatch) / self._divided_by()

    def _weight(self, step, microbatch):
        return self.case.steps[step]["microbatches"][microbatch].get("loss_weight", 1)

    def _divided_by(self):
        """What divides each loss before its backward."""
        return self.case.json["gradients"]["divide_by"] / self.summed_over

    # --- steps ----------------------------------------------------------------------------------------------------

    def run(self):
        for number, step in enumerate(self.case.steps):
            self.recorder.begin(number)
            if step["kind"] == "train":
                self.engine.train_batch(self._batches(number))
                self._hook_calls()
            elif step["kind"] == "eval":
                reduce_output = "avg" if step["loss"] else None
                self.engine.eval_batch(self._batches(number), compute_loss=step["loss"], reduce_output=reduce_output)
            elif step["kind"] == "read":
                for name, gradient in self.gradients.items():
                    self.recorder.put("grad", None, None, name, gradient)
            elif step["kind"] in ("freeze", "unfreeze"):
                for name in self.parameters.keys() & set(step["parameters"]):
                    self.parameters[name].requires_grad_(step["kind"] == "unfreeze")
        self._state()
        return self.recorder.results

    def _batches(self, step):
        """What DeepSpeed loads: (inputs, labels) of each micro-batch; the labels begin with its weight."""
        for m in range(self.case.microbatches):
            inputs = tuple(x for x in self.case.inputs(step, m) if x is not None)
            target = self.case.target(step, m)
            weight = torch.tensor(self._weight(step, m), dtype=torch.float64)
            targets = [] if target is None else self.case.flat_targets(target)
            yield inputs[0] if len(inputs) == 1 else inputs, (weight, *targets)

    def _after_backward(self, buffer):
        """The gradients that this stage owes. DeepSpeed has divided the loss: this undoes it."""
        if self.index == 0:
            return
        arrived = self.engine.pipe_buffers["inputs"][buffer]
        arrived = dict(zip(self.layer.takes(), arrived if isinstance(arrived, tuple) else (arrived,), strict=True))
        microbatch = self.recorder.microbatch
        for boundary in self.layer.arriving():
            name = boundary["name"]
            gradient = self.layer.shares.pop((microbatch, name), arrived[name]).grad
            if gradient is not None:  # else DeepSpeed fails when it sends it
                self.recorder.put("backward", self.index, microbatch, name, gradient * self._divided_by())

    def _before_update(self):
        if self.case.json["optimizer"] is None:
            self._keep_gradients()
            for name, gradient in self.gradients.items():
                self.recorder.put("grad", None, None, name, gradient)

    def _keep_gradients(self):
        self.gradients = {name: p.grad.clone() for name, p in self.parameters.items() if p.grad is not None}

    def _clip(self, *args, **keywords):
        """Observes the norm by which DeepSpeed clips: the step of the optimizer follows that of the training."""
        norm = CLIP(*args, **keywords)
        self.recorder.results.put(self.recorder.step + 1, "grad-norm", None, None, "norm", norm.double().reshape(()))
        return norm

    def _hook_calls(self):
        microbatches = self.case.microbatches
        if self.case.json["parameter_hooks"]:
            for name in self.gradients:
                if self.parameters[name].requires_grad:
                    self.recorder.hook_calls(self.index, name, microbatches)
        if self.case.json["boundary_hooks"]:
            self.recorder.microbatch = 0
            for boundary in self.layer.arriving():
                self.recorder.hook_calls(self.index, boundary["name"], microbatches)

    def _state(self):
        for name, buffer in self.layer.stage.named_buffers():
            self.recorder.put("buffer", None, None, name, buffer)
        for name, parameter in self.parameters.items():
            self.recorder.put("param", None, None, name, parameter)
            for entry, value in self.optimizer.state[parameter].items():
                if value is not None:
                    value = value.to(torch.int64) if entry == "step" else value
                    self.recorder.put("optimizer-state", None, None, f"{name}/{entry}", value)


def optimizer_of(options, groups):
    """torch's optimizer, as DeepSpeed's users give it; `options` as in case.json, empty without one."""
    if not options:
        return Unchanged(groups)
    rate, decay = options["learning_rate"], options.get("weight_decay", 0.0)
    if options["kind"] == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=options["momentum"], weight_decay=decay)
    betas = options["beta1"], options["beta2"]
    return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=options["epsilon"], weight_decay=decay)
