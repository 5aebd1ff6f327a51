"""The cases that Megatron-core supports, decided before execution by its documentation and its own rejections.

Cases that it accepts and computes wrongly are not excluded here: they are run, and delivered unchanged.
"""

import re

from plumbline_case.case import has_isolated_loss, writes_buffers

COMPUTATION = re.compile(r"(\d+)([FBIW])(\d+)$")
FLOATS = ("F64", "F32", "F16", "BF16")


def placement(case):
    """[rank]: its stages, ascending."""
    matches = [[COMPUTATION.match(cell) for cell in row] for row in case.schedule()]
    return [sorted({int(match[1]) for match in row if match}) for row in matches]


def tied(case):
    """The parameter that the first and the last stage share, as Megatron-core's embedding; None if there is none."""
    found = [p["name"] for p in case.program["parameters"] if p["stages"] == [0, case.stages - 1]]
    return found[0] if len(found) == 1 else None


def why_not(case):
    """None if Megatron-core can run the case, else the reason."""
    part = case.of_replica(0)
    for test in (_placement, _microbatches, _boundaries, _local_losses, _gradients, _clipping):
        if reason := test(part):
            return reason
    return _replicas(case) if case.replicas > 1 else None


def _replicas(case):
    frozen = {p["name"] for p in case.program["parameters"] if not p["requires_grad"]}
    if any(frozen & set(step["parameters"]) for step in case.steps if step["kind"] == "unfreeze"):
        return "a parameter that learns later: DistributedDataParallel has gradients of those that learn at first"
    if writes_buffers(case.program):
        return "stages that write buffers: each replica's are those of its own micro-batches"
    return None


def _placement(case):
    ranks, stages = case.ranks, case.stages
    if ranks == 1:
        return "a pipeline of one rank: Megatron-core has other schedules there, of a model in one piece"
    if placement(case) != [list(range(rank, stages, ranks)) for rank in range(ranks)]:
        return "another placement: Megatron-core puts stage s on rank s modulo the number of ranks"
    if case.json["schedule"]["name"] == "1f1b" and stages != ranks:
        return "1F1B of Megatron-core has one stage a rank"
    if case.json["schedule"]["name"] != "1f1b" and stages == ranks:
        return "interleaved 1F1B of Megatron-core has several stages a rank"
    return None


def _microbatches(case):
    """forward_backward_pipelining_with_interleaving refuses these itself."""
    ranks, microbatches = case.ranks, case.microbatches
    if case.json["schedule"]["name"] != "1f1b" and microbatches % ranks:
        return f"interleaved 1F1B of Megatron-core needs a multiple of {ranks} micro-batches: {microbatches} are none"
    return None


def _boundaries(case):
    for program in case.program["programs"]:
        made = [[b for b in program["boundaries"] if b["producer"] == s] for s in range(case.stages - 1)]
        if any(b["consumers"] != [b["producer"] + 1] for b in program["boundaries"]):
            return "values that skip a stage: Megatron-core sends to the next stage"
        if any(len(of_stage) != 1 for of_stage in made):
            return "a stage hands on more or less than one tensor: Megatron-core sends one"
    boundaries = [b for program in case.program["programs"] for b in program["boundaries"]]
    if any(b["dtype"] not in FLOATS for b in boundaries):
        return "integers between stages: Megatron-core's receive buffers require gradients"
    if len({b["dtype"] for b in boundaries}) > 1:
        return "several element types between stages: Megatron-core has one pipeline_dtype"
    return None


def _local_losses(case):
    """Their backward begins where that of the output of their stage begins."""
    if has_isolated_loss(case.program):
        return "a loss of a stage to which no gradient is sent: nothing begins its backward"
    return None


def _gradients(case):
    gradients = case.json["gradients"]
    if gradients["divide_by"] not in (1, case.microbatches):
        return f"gradients divided by {gradients['divide_by']}: Megatron-core divides by micro-batches, by tokens or not at all"
    return None


def _clipping(case):
    clip = (case.json["optimizer"] or {}).get("clip")
    if clip and clip["epsilon"] != 1e-6:
        return f"clipping with {clip['epsilon']} added to the norm: Megatron-core adds 1e-6"
    if clip and case.json["dtype"] == "F64":
        return "clipping of float64: Megatron-core's norm and clipping are of float32"
    return None
