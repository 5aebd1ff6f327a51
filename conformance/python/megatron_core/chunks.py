"""A stage of a case as a model chunk of Megatron-core, and the wrapper that accumulates its gradients."""

import torch
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.distributed.data_parallel_base import _BaseDataParallel
from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel.utils import make_viewless
from megatron.core.transformer.module import MegatronModule
from megatron.core.transformer.moe.moe_utils import MoEAuxLossAutoScaler


def wire_shape(shape):
    """The [sequence, batch, hidden] under which a value travels: rows are the batch of a sequence of one."""
    if len(shape) < 3:
        return [1, *shape, *[1] * (2 - len(shape))]
    return [*shape[:2], torch.Size(shape[2:]).numel()]


def to_wire(tensor):
    """As a user of Megatron-core writes it at the end of a model chunk, which must not return a view."""
    if tensor.dim() < 3:
        tensor = tensor[(None, ..., *[None] * (2 - tensor.dim()))]
    return make_viewless(tensor.flatten(2))


def from_wire(tensor, shape):
    """The reverse; the received tensor tells the sizes of all but a value of four dimensions."""
    if len(shape) < 3:
        return tensor[(0, ..., *[0] * (2 - len(shape)))]
    return tensor if len(shape) == 3 else tensor.unflatten(2, shape[2:])


class Chunk(MegatronModule):
    """Stage `index` of a case. It gets the micro-batch's number; its data are the user's, not the pipeline's."""

    def __init__(self, config, case, index, tied, recorder, losses):
        super().__init__(config)
        self.stage = case.stage(index)
        self.model_type = ModelType.encoder_or_decoder
        self.pre_process, self.post_process = index == 0, index == case.stages - 1
        self.share_embeddings_and_output_weights = tied is not None
        self.step = None
        self._case, self._index, self._tied, self._recorder, self._losses = case, index, tied, recorder, losses
        self._received = None

    def shared_embedding_or_output_weight(self):
        return self.stage.get_parameter(self._tied)

    def set_input_tensor(self, tensors):
        """Called by Megatron-core before each forward."""
        self._received = tensors[0]

    def forward(self, m):
        case, program = self._case, self._case.step_program(self.step, m)
        boundaries = {b["name"]: b for b in program["boundaries"]}
        inputs = self._model_inputs(m) if self.pre_process else [self._taken(m, boundaries)]
        made = self.stage(*inputs, **case.masks(self.step, self._index, m))
        outputs = list(case.flat_outputs(made))
        for name, value in zip(self.stage.output_names(), outputs, strict=True):
            if value is not None:
                kind = ("output", None) if self.post_process else ("forward", self._index)
                self._recorder.put(*kind, m, name, value)
        self._begin_losses(outputs, m)
        if self.post_process:
            return outputs
        sent = to_wire(outputs[0])
        # Megatron-core frees what it has sent, and its own block without layers returns a copy for that reason.
        sent = sent.clone() if sent is self._received else sent
        self._recorder.backward_begins(self._index, m, sent)
        return sent

    def _model_inputs(self, m):
        wanted = self.training and self._case.json["input_gradients"]
        inputs = []
        for entry, x in zip(self._case.json["inputs"], self._case.inputs(self.step, m), strict=True):
            if wanted and x is not None and x.is_floating_point():
                x = x.clone().requires_grad_()
                factor = self._losses.undivided(self.step)
                self._recorder.accumulated("input-grad", None, m, entry["name"], x, x.shape, factor)
            inputs.append(x)
        return inputs

    def _taken(self, m, boundaries):
        boundary = boundaries[self.stage.input_names()[0]]
        value = from_wire(self._received, boundary["shape"])
        if self.training and boundary["has_gradient"]:
            name = boundary["name"]
            factor = self._losses.undivided(self.step)
            self._recorder.accumulated("backward", self._index, m, name, self._received, value.shape, factor)
            if self._case.json["boundary_hooks"]:
                value.register_hook(self._recorder.counting(self._index, m, name))
        return value

    def hooked(self):
        """The boundaries on which the forward registers hooks, in a case with `boundary_hooks`."""
        boundaries = {b["name"]: b for b in self._case.step_program(self.step, 0)["boundaries"]}
        names = [] if self.pre_process else self.stage.input_names()
        return [name for name in names if boundaries[name]["has_gradient"]]

    def _begin_losses(self, outputs, m):
        """Begins the backward of this stage's own losses where that of its output begins, as the router of Megatron-core
        does for its auxiliary losses."""
        for name, made in self.stage.local_losses.items():
            result, root = self._losses.own(made, self.step, m)
            self._recorder.put("loss", None, m, name, result)
            if root.requires_grad:
                outputs[0] = MoEAuxLossAutoScaler.apply(outputs[0], root)


class Replica(_BaseDataParallel):
    """The only data-parallel replica of a chunk: as Megatron-core's DistributedDataParallel, it moves each micro-batch's
    gradient to main_grad. Unlike that, a parameter without a gradient has None there instead of zeros."""

    def __init__(self, config, chunk):
        super().__init__(config, chunk)
        self.ddp_config = DistributedDataParallelConfig()
        for parameter in chunk.parameters():
            parameter.main_grad = None
            frozen = not parameter.requires_grad
            # A parameter that is frozen now may be unfrozen by a later step.
            parameter.requires_grad_().register_post_accumulate_grad_hook(self._accumulate)
            parameter.requires_grad_(not frozen)

    @staticmethod
    def _accumulate(parameter):
        gradient, parameter.grad = parameter.grad, None
        parameter.main_grad = gradient.clone() if parameter.main_grad is None else parameter.main_grad.add_(gradient)

    def finish_grad_sync(self, force_all_reduce=False):
        """There is no other replica."""

    def scale_gradients(self, scaling_factor):
        for parameter in self.module.parameters():
            if parameter.main_grad is not None:
                parameter.main_grad *= scaling_factor

    def gradient(self, parameter):
        return parameter.main_grad

    def drop_gradients(self):
        for parameter in self.module.parameters():
            parameter.main_grad = None


class OneOfSeveral(DistributedDataParallel):
    """One of several replicas of a chunk: Megatron-core's own, which has zeros in place of no gradient. It is noted which
    parameters have got one."""

    def __init__(self, config, chunk):
        super().__init__(config, DistributedDataParallelConfig(), chunk)
        self._with_gradient = set()
        for parameter in chunk.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._with_gradient.add)

    def gradient(self, parameter):
        return parameter.main_grad if parameter in self._with_gradient else None

    def drop_gradients(self):
        self.zero_grad_buffer()
        self._with_gradient.clear()
