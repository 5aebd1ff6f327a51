"""What a user of Megatron-core does between the last backward and the update, with Megatron-core's norm and clipping."""

from types import SimpleNamespace

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.optimizer.clip_grads import clip_grad_by_total_norm_fp32, get_grad_norm_fp32

from megatron_cpu import on_cpu


def with_sums(gradients, shared, held):
    """{name: gradient} as the optimizer sees them, from {(stage, name): gradient}. Those of parameters in `shared` are summed
    over the copies, in ascending order of stages. A rank that has a copy, one of the names `held`, gets the sum."""
    sums = {}
    if shared:
        pipeline = parallel_state.get_pipeline_model_parallel_group()
        of_ranks = [None] * pipeline.size()
        dist.all_gather_object(of_ranks, {key: g for key, g in gradients.items() if key[1] in shared}, group=pipeline)
        for (_, name), gradient in sorted(item for part in of_ranks for item in part.items()):
            sums[name] = gradient if name not in sums else sums[name] + gradient
    own = {name: gradient for (_, name), gradient in gradients.items()}
    return own | {name: total for name, total in sums.items() if name in held}


def finite(gradients):
    """Whether those of all ranks of the pipeline are."""
    nonfinite = torch.tensor(sum(not gradient.isfinite().all() for gradient in gradients))
    dist.all_reduce(nonfinite, group=parallel_state.get_pipeline_model_parallel_group())
    return int(nonfinite) == 0


def divided(gradients, divisor):
    for gradient in gradients:
        gradient.div_(divisor)


def clipped(gradients, counted, clip):
    """Clips `gradients` in place, by the norm of those of all ranks in `counted`. Returns the norm. As Megatron-core's
    optimizer does, on copies in float32 of those of 16 bits."""
    gradients, counted = list(gradients), list(counted)
    mains = {id(g): g.float() for g in [*gradients, *counted]}
    with on_cpu():
        norm = get_grad_norm_fp32(
            [mains[id(g)] for g in counted], float(clip["norm"]), parallel_state.get_model_parallel_group()
        )
        # With decoupled gradients, since otherwise it insists on tensors of a GPU.
        holders = [SimpleNamespace(decoupled_grad=mains[id(g)]) for g in gradients]
        clip_grad_by_total_norm_fp32(holders, clip["max"], norm, use_decoupled_grad=True)
    for gradient in gradients:
        if gradient is not mains[id(gradient)]:
            gradient.copy_(mains[id(gradient)])
    return norm
