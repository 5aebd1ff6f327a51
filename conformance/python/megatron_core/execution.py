"""One case on one rank: builds Megatron-core's model from it, executes its steps, collects its results."""

import contextlib
from functools import partial

import torch
from megatron.core import parallel_state
from megatron.core.distributed import finalize_model_grads
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.transformer_config import TransformerConfig
from plumbline_case.torch import load
from plumbline_case.torch.optimizers import begin_states, put_states, update
from plumbline_case.torch.tensors import DTYPES

import losses
from chunks import Chunk, OneOfSeveral, Replica, wire_shape
from gradients import clipped, divided, finite, with_sums
from megatron_cpu import on_cpu
from recorder import Recorder
from support import placement, tied


class Execution:
    """`messages`: "batched" or "overlapped"."""

    def __init__(self, folder, messages, delivers, timeout):
        whole = load(folder)
        self.ranks = whole.pipeline_ranks
        _initialize(self.ranks, timeout)
        self.case = whole.of_replica(parallel_state.get_data_parallel_rank())
        self.recorder = Recorder(set(delivers) & set(self.case.json["results"]), self.case.first_microbatch)
        self.step = 0
        self.losses = losses.Losses(self.case, whole)
        self.config = self._config(messages)
        self.tied = tied(self.case)
        own = placement(self.case)[parallel_state.get_pipeline_model_parallel_rank()]
        self.chunks = {s: Chunk(self.config, self.case, s, self.tied, self.recorder, self.losses) for s in own}
        with on_cpu():
            kind = Replica if whole.replicas == 1 else OneOfSeveral
            self.model = [kind(self.config, chunk) for chunk in self.chunks.values()]
        self.optimizer_states = begin_states(self.case, self._parameters())
        if self.case.json["parameter_hooks"]:
            for key, parameter in self._parameters().items():
                if parameter.requires_grad:
                    parameter.register_hook(self.recorder.doubling(*key))

    def _config(self, messages):
        case = self.case
        interleaved = case.json["schedule"]["name"] != "1f1b"
        shapes = self._wire_shapes()
        hidden = shapes[0][0][2]
        return TransformerConfig(
            num_layers=case.stages,
            num_attention_heads=1,
            hidden_size=hidden,
            pipeline_model_parallel_size=self.ranks,
            virtual_pipeline_model_parallel_size=case.stages // self.ranks if interleaved else None,
            pipeline_dtype=DTYPES[case.program["programs"][0]["boundaries"][0]["dtype"]],
            variable_seq_lengths=any(s != of_step[0] or s[2] != hidden for of_step in shapes for s in of_step),
            batch_p2p_comm=messages == "batched",
            overlap_p2p_comm=messages == "overlapped" and interleaved,
            # Under overlap it frees what is still being sent: deviations/overlapped_send_of_freed_memory.py
            deallocate_pipeline_outputs=messages == "batched",
            calculate_per_token_loss=self.losses.per_token,
            grad_scale_func=self.losses.scaled if self.losses.scale != 1 else None,
            finalize_model_grads_func=self._finalize,
            # The default refuses variable lengths, even without experts.
            moe_token_dispatcher_type="alltoall",
            # Megatron-core scales auxiliary losses only in a model with experts.
            num_moe_experts=1 if any(map(case.local_losses, range(case.stages))) else None,
        )

    def _wire_shapes(self):
        """[step][boundary]: the shapes between stages, of each step with micro-batches."""
        return [
            [wire_shape(b["shape"]) for m in range(self.case.microbatches) for b in self.case.step_program(s, m)["boundaries"]]
            for s, step in enumerate(self.case.steps)
            if "microbatches" in step
        ]

    def _finalize(self, model, tokens=None, **keywords):
        """Tokens divide the gradients only where the loss is a mean over them."""
        finalize_model_grads(model, tokens if self.losses.by_tokens else None, **keywords)

    # --- steps ----------------------------------------------------------------------------------------------------

    def run(self):
        for number, step in enumerate(self.case.steps):
            self.recorder.begin(number)
            self.step = number
            if step["kind"] in ("train", "eval"):
                self._batch(number, step)
            elif step["kind"] == "zero_grad":
                for model in self.model:
                    model.drop_gradients()
            elif step["kind"] == "optimizer":
                self._update()
            elif step["kind"] == "read":
                self._put_gradients()
            else:
                for (_, name), parameter in self._parameters().items():
                    if name in step["parameters"]:
                        parameter.requires_grad_(step["kind"] == "unfreeze")
        self._state()
        return self.recorder.results

    def _batch(self, number, step):
        train = step["kind"] == "train"
        for chunk in self.chunks.values():
            chunk.train(train)
            chunk.step = number
        chunks = self.config.virtual_pipeline_model_parallel_size
        data = [iter(range(self.case.microbatches)) for _ in self.model]
        sequence, batch, _ = wire_shape(self.case.step_program(number, 0)["boundaries"][0]["shape"])
        with contextlib.nullcontext() if train else torch.no_grad(), on_cpu():
            reports = get_forward_backward_func(self.ranks, chunks)(
                forward_step_func=self._forward,
                data_iterator=data,
                model=self.model,
                num_microbatches=self.case.microbatches,
                seq_length=sequence,
                micro_batch_size=batch,
                forward_only=not train,
            )
        if self.case.stages - 1 in self.chunks and step["loss"]:
            for m, report in enumerate(reports):
                self.recorder.put("loss", None, m, "loss", report["loss"])
        if train:
            # Cases that update parameters leave these to read steps.
            if self.case.json["optimizer"] is None:
                self._put_gradients()
            self._put_hook_calls()

    def _forward(self, data, model):
        """The user's forward_step_func."""
        m = next(data)
        outputs = model(m)
        if not self.case.has_loss(self.step):
            return outputs, None
        last = self.chunks.get(self.case.stages - 1)
        return outputs, partial(self.losses.last, self.step, m, self.recorder, last and last.stage.loss_parameters())

    def _put_hook_calls(self):
        if self.case.json["parameter_hooks"]:
            for stage, name in self._own_gradients():
                self.recorder.hook_calls(stage, name, self.case.microbatches)
        if self.case.json["boundary_hooks"]:
            for stage, chunk in self.chunks.items():
                for name in chunk.hooked():
                    self.recorder.hook_calls(stage, name, self.case.microbatches)

    # --- parameters -----------------------------------------------------------------------------------------------

    def _parameters(self):
        """{(stage, canonical name): parameter} of this rank."""
        return {
            (index, name): parameter
            for index, chunk in self.chunks.items()
            for name, parameter in chunk.stage.named_parameters()
        }

    def _own_gradients(self):
        """{(stage, name): gradient} of the parameters that have one."""
        return {
            (index, name): gradient
            for index, model in zip(self.chunks, self.model, strict=True)
            for name, parameter in self.chunks[index].stage.named_parameters()
            if (gradient := model.gradient(parameter)) is not None
        }

    def _gradients(self):
        """{name: gradient}. Megatron-core sums those of a weight that the first and the last stage share."""
        own = self._own_gradients()
        shared = {p["name"] for p in self.case.program["parameters"] if len(p["stages"]) > 1}
        return with_sums(own, shared - {self.tied}, {name for _, name in self._parameters()})

    def _put_gradients(self):
        for name, gradient in self._gradients().items():
            self.recorder.put("grad", None, None, name, gradient)

    def _update(self):
        options, gradients = self.case.json["optimizer"], self._gradients()
        if options.get("skip_nonfinite") and not finite(gradients.values()):
            return
        # What the optimizer sees and what later steps add to: the same tensors, but for shared parameters.
        changed = {id(gradient): gradient for gradient in [*gradients.values(), *self._own_gradients().values()]}.values()
        if "loss_scale" in options:
            divided(changed, options["loss_scale"])
        if "clip" in options:
            # A parameter counts once: where its first copy is.
            first = {p["name"] for p in self.case.program["parameters"] if p["stages"][0] in self.chunks}
            norm = clipped(changed, [g for name, g in gradients.items() if name in first], options["clip"])
            self.recorder.put("grad-norm", None, None, "norm", torch.tensor(norm, dtype=torch.float64))
        for key, parameter in self._parameters().items():
            if key[1] in gradients:
                update([parameter], gradients[key[1]], self.optimizer_states[key], options)

    def _state(self):
        for chunk in self.chunks.values():
            for name, buffer in chunk.stage.named_buffers():
                self.recorder.put("buffer", None, None, name, buffer)
        for (_, name), parameter in self._parameters().items():
            self.recorder.put("param", None, None, name, parameter)
        put_states(self.recorder.put, self.optimizer_states)


def _initialize(ranks, timeout):
    """The groups of ranks of Megatron-core, which keeps them for all cases with as many ranks in a pipeline."""
    if parallel_state.model_parallel_is_initialized():
        if parallel_state.get_pipeline_model_parallel_world_size() == ranks:
            return
        parallel_state.destroy_model_parallel()
    with on_cpu():
        parallel_state.initialize_model_parallel(
            pipeline_model_parallel_size=ranks, distributed_timeout_minutes=timeout / 60, create_gloo_process_groups=False
        )
