"""Data-parallel replicas of the pipeline, as users of PyTorch make them: each stage wrapped in DistributedDataParallel, or,
where the case divides parameters, sharded by fully_shard, over the ranks that have it."""

import datetime
import functools

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel


@functools.cache
def _groups(ranks, replicas, seconds):
    """(the ranks of this rank's replica, those that have its stages in each replica) as process groups; (None, None) for one
    replica. They live as long as the process group of all ranks."""
    if replicas == 1:
        return None, None
    pipelines = [list(range(ranks * r, ranks * (r + 1))) for r in range(replicas)]
    return tuple(
        dist.new_subgroups_by_enumeration(lists, timeout=datetime.timedelta(seconds=seconds))[0]
        for lists in (pipelines, [list(own) for own in zip(*pipelines, strict=True)])
    )


class Replicas:
    """This rank's place among the replicas of a case, and its stages as theirs."""

    def __init__(self, case, timeout):
        self.case, self.count = case, case.replicas
        self.number, self.rank = divmod(dist.get_rank(), case.pipeline_ranks)
        self.pipeline, self._peers = _groups(case.pipeline_ranks, case.replicas, timeout)

    def loss_factor(self):
        """What every loss is multiplied by: both average gradients, also where the case asks for the sum over replicas."""
        return 1 if self._peers is None or self.case.of_replica(0).averages_replicas else self.case.replicas

    def replicated(self, module, stage):
        """The module of a stage as PipelineStage gets it."""
        if self._peers is None:
            return module
        if self.case.shards_parameters:
            # Not after each forward: the schedule decides when a stage with several micro-batches keeps its parameters.
            return fully_shard(module, mesh=DeviceMesh.from_group(self._peers, torch.get_default_device().type), reshard_after_forward=False)
        if not any(p.requires_grad for p in module.parameters()):
            return module  # DistributedDataParallel refuses it
        return DistributedDataParallel(module, process_group=self._peers, find_unused_parameters=self._has_unused(stage))

    def _has_unused(self, stage):
        """Whether a parameter of the stage may be without a gradient, which DistributedDataParallel has to be told."""
        forms = [program["stages"][stage] for program in self.case.program["programs"] if program["training"]]
        return any(entry["value"] is None for form in forms for entry in form["parameters"])

    def summed(self, values, over_parts=torch.sum):
        """Numbers of this rank's parameters, summed over the pipeline; those of parts of a parameter by `over_parts`."""
        dist.all_reduce(values, group=self.pipeline)
        if not self.case.shards_parameters:
            return values
        of_parts = [torch.empty_like(values) for _ in range(self.case.replicas)]
        dist.all_gather(of_parts, values, group=self._peers)
        return over_parts(torch.stack(of_parts), 0)


def part(tensor):
    """This rank's part of a parameter or a gradient of a sharded stage; else the tensor itself."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(own, parameter):
    """The whole tensor, from each rank's part of it and the parameter that it belongs to."""
    if not isinstance(parameter, DTensor):
        return own
    layout = parameter.device_mesh, parameter.placements
    return DTensor.from_local(own, *layout, shape=parameter.shape, stride=parameter.stride()).full_tensor()


def own_rows(full, parameter):
    """This rank's part of a tensor that is like a parameter."""
    if not isinstance(parameter, DTensor):
        return full
    pieces, rank = full.chunk(parameter.device_mesh.size()), parameter.device_mesh.get_local_rank()
    return pieces[rank].clone() if rank < len(pieces) else full[:0].clone()
