"""The cases that PyTorch's pipelining supports, decided before execution by its documentation and its own rejections.

Cases that it accepts and computes wrongly are not excluded here: they are run, and delivered unchanged.
"""

import itertools
import re

from plumbline_case.case import has_isolated_loss, writes_buffers

# plumbline's names of schedules that are a class in PyTorch.
CLASSES = {
    "gpipe": "ScheduleGPipe",
    "1f1b": "Schedule1F1B",
    "interleaved-1f1b": "ScheduleInterleaved1F1B",
    "looped-bfs": "ScheduleLoopedBFS",
    "interleaved-zero-bubble": "ScheduleInterleavedZeroBubble",
    "zb-v": "ScheduleZBVZeroBubble",
    "dualpipe-v": "ScheduleDualPipeV",
}
SINGLE = ("gpipe", "1f1b")
V_SHAPED = ("zb-v", "dualpipe-v")
COMPUTATION = re.compile(r"(\d+)([FBIW])(\d+)$")


class Files:
    """The parts of a case, or of one of its replicas, that the decision needs."""

    def __init__(self, case):
        self.case, self.program, self.rows = case.json, case.program, case.schedule()

    def computations(self):
        """[rank][position]: (stage, letter, micro-batch); the actions of a group in order."""
        rows = []
        for row in self.rows:
            cells = [part for cell in row for part in cell.removesuffix("OVERLAP_F_B").strip("()").split(";")]
            matches = [COMPUTATION.match(cell) for cell in cells]
            rows.append([(int(m[1]), m[2], int(m[3])) for m in matches if m])
        return rows

    def placement(self):
        """[rank]: its stages, ascending."""
        return [sorted({stage for stage, _, _ in row}) for row in self.computations()]


def why_not(files, version, traced):
    """None if that version of PyTorch ("2.15.0") can run the case, else the reason."""
    for test in (_placement, _class_limits, _gradients, _local_losses, _inputs, _borders, _in_place):
        if reason := test(files):
            return reason
    checks_shapes = [int(part) for part in version.split(".")[:2]] < [2, 13]
    if reason := _recomputation(files, checks_shapes, traced) or _accumulators(files, version):
        return reason
    if checks_shapes and (reason := _shared_leaves(files)):
        return reason
    if (checks_shapes or traced) and (reason := _shapes(files)):
        return reason
    return _traced(files) if traced else _values(files)


def why_not_reentrant(files):
    """None if reentrant checkpoints change how PyTorch runs the case, and can run it, else the reason."""
    if files.case["recompute"] == "never":
        return "nothing is recomputed: the backend without --reentrant runs it"
    if any(letter == "I" for row in files.computations() for _, letter, _ in row):
        return "a backward in halves: a reentrant checkpoint refuses a backward to some of its inputs only"
    if any(e["to"] == "loss" for p in files.program["programs"] for stage in p["stages"] for e in stage["outputs"]):
        return "losses of early stages: the first forward of a reentrant checkpoint makes them without a graph"
    trained = [b for p in files.program["programs"] if p["training"] for b in p["boundaries"]]
    if any(not b["has_gradient"] and b["dtype"][0] in "BFC" and b["dtype"] != "BOOL" for b in trained):
        return "a value between stages that requires no gradient: a reentrant checkpoint makes every output require one"
    return None


def why_not_replicated(case, version, stages):
    """None if DDP, or FSDP where the case divides parameters, can keep its replicas equal, else the reason."""
    if case.replicas == 1:
        return None
    if stages == "traced":
        return "replicas of traced stages: such a stage reads its module's graph, which DDP's module does not have"
    if case.loss_parameters():
        return "replicas of a loss function with parameters: its user would reduce their gradients, DDP and FSDP those of stages"
    if any(step["kind"] in ("freeze", "unfreeze") for step in case.steps[len(before_batches(case)) :]):
        return "freezing between steps: DDP and FSDP are set up for the parameters that learn at first"
    if writes_buffers(case.program):
        return "stages that write buffers: each replica's are those of its own micro-batches"
    if _compares_bits(case.json, version):
        if _on_several_ranks(case):
            return "a parameter on several ranks: its copies are added after DDP or FSDP reduced each, in another order (its bits differ)"
        if stages == "manual" and not case.shards_parameters:
            return "replicas whose shapes are inferred: DDP reduces the first micro-batch apart, another order (bits differ)"
    return (_in_fsdp if case.shards_parameters else _in_ddp)(case)


def before_batches(case):
    """The steps before the first one with micro-batches, when a user has not made stages yet."""
    return list(itertools.takewhile(lambda step: "microbatches" not in step, case.steps))


def _on_several_ranks(case):
    placement = Files(case.of_replica(0)).placement()
    return any(sum(bool(set(parameter["stages"]) & set(own)) for own in placement) > 1 for parameter in case.program["parameters"])


def _in_ddp(case):
    for own in Files(case.of_replica(0)).placement():
        if any(len(set(parameter["stages"]) & set(own)) > 1 for parameter in case.program["parameters"]):
            return "a parameter of several stages of a rank: DDP says that two of its modules must not share one"
    return None


def _in_fsdp(case):
    if case.json["parameter_hooks"]:
        return "hooks on parameters: under FSDP a user has parts of parameters, on which autograd calls none"
    if any(parameter["shape"] == [] for parameter in case.program["parameters"]):
        return "a parameter without dimensions: fully_shard refuses it"
    for stage in range(case.stages):
        if len({parameter["dtype"] for parameter in case.program["parameters"] if stage in parameter["stages"]}) > 1:
            return "a stage with parameters of several element types: fully_shard refuses it"
    return None


def plain(case):
    """Whether every input is divided as PyTorch does by default."""
    return all(entry["chunk"] == {"dim": 0} for entry in case["inputs"])


def _placement(files):
    stages = [stage for row in files.placement() for stage in row]
    if len(stages) != len(set(stages)):
        return "a stage on two ranks: PyTorch's pipelining keeps every stage on one"
    letters = {letter for row in files.computations() for _, letter, _ in row}
    if not letters & set("BIW"):
        return "a schedule without backwards is refused when PyTorch validates it"
    return None


def _class_limits(files):
    name, microbatches = files.case["schedule"]["name"], files.case["microbatches"]
    ranks, stages = len(files.rows), files.case["stages"]
    if name not in CLASSES:
        return None
    if name in SINGLE and stages != ranks:
        return f"{CLASSES[name]} takes one stage a rank"
    if name == "1f1b" and microbatches < stages:
        return f"Schedule1F1B needs as many micro-batches as stages: {microbatches} are less than {stages}"
    if name.startswith("interleaved"):
        rounds = max(1, microbatches // ranks)
        if microbatches % rounds:
            return f"{CLASSES[name]} needs micro-batches that are a multiple of its rounds: {microbatches} and {rounds}"
    if name in V_SHAPED and stages != 2 * ranks:
        return f"{CLASSES[name]} takes two stages a rank"
    if name == "dualpipe-v" and microbatches < stages:
        return f"ScheduleDualPipeV needs as many micro-batches as stages: {microbatches} are less than {stages}"
    return None


def _shapes(files):
    """Rejected up to 2.12 (pytorch issue 126600); later versions continue with the first one's shapes."""
    for step in files.case["steps"]:
        if len({m["program"] for m in step.get("microbatches", [])}) > 1:
            return "micro-batches of different shapes: PyTorch takes the first one's for all (pytorch issue 126600)"
    return None


def _values(files):
    """Rejected when shapes are inferred or given."""
    outputs = [output for p in files.program["programs"] for stage in p["stages"] for output in stage["outputs"]]
    if any(output["value"] is None for output in outputs):
        return "an output that is None: what a PipelineStage gives must be tensors"
    return None


def _gradients(files):
    gradients = files.case["gradients"]
    if gradients["divide_by"] not in (1, files.case["microbatches"]):
        return f"gradients divided by {gradients['divide_by']}: scale_grads divides by the number of micro-batches or not at all"
    for step in files.case["steps"]:
        if len({m.get("loss_weight", 1) for m in step.get("microbatches", [])}) > 1:
            return "losses that weigh differently: PyTorch's loss function does not get the micro-batch"
    return None


def _local_losses(files):
    """The adapter begins the backward of such a loss where that of an output of its stage begins."""
    if has_isolated_loss(files.program):
        return "a loss of a stage to which no gradient is sent: PyTorch runs no backward there"
    return None


def _inputs(files):
    if files.case["schedule"]["name"] == "looped-bfs" and not plain(files.case):
        return "ScheduleLoopedBFS takes no args_chunk_spec: every input is divided along dimension 0"
    if files.case["target"] != {"dim": 0} and any(step.get("target") for step in files.case["steps"]):
        return "a target that is not divided along dimension 0: PyTorch divides it so"
    if "targets" in files.case and not files.case.get("divided"):
        return "several targets: step() divides one tensor of targets"
    return None


def _borders(files):
    if "outputs" in files.case:
        return "outputs in a dict: PyTorch says that a stage gives a tensor, a tuple or a list"
    ports = [
        port
        for program in files.program["programs"]
        for stage in program["stages"]
        for port in stage["inputs"] + stage["outputs"]
    ]
    if any(port["value"] is None and "boundary" in (port.get("from"), port.get("to")) for port in ports):
        return "a value between stages that is None in some steps: PyTorch's stages send tensors only"
    return None


def _in_place(files):
    if "in-place" in files.case["features"]:
        return "stages that change what they are given in place: the files have pure functions instead"
    return None


def _recomputation(files, early, traced):
    if files.case["recompute"] == "never":
        return None
    if traced:
        return "recomputation: a traced pipe keeps no checkpoints of the user's modules"
    if early and files.case["recompute"] == "except-last":
        return "recomputation of some micro-batches: a stage is not told its micro-batch (up to 2.12)"
    if writes_buffers(files.program):
        return "recomputation of a stage that writes buffers: torch.utils.checkpoint writes them again"
    return None


def _compares_bits(case, version):
    """Under plumbline's LibTorch the bits of sums are compared."""
    return case["truth"] == "same-order" and version == "2.15.0"


def _accumulators(files, version):
    """The contract has an accumulator for each stage's copy."""
    if not _compares_bits(files.case, version):
        return None
    for parameter in files.program["parameters"]:
        if any(len(set(parameter["stages"]) & set(own)) > 1 for own in files.placement()):
            return "a parameter of several stages of a rank is one, and accumulates in another order than copies (its bits differ)"
    return None


def _shared_leaves(files):
    """Up to 2.12, step() takes whole batches only."""
    if files.case.get("divided") or any("input_gradients" in m for s in files.case["steps"] for m in s.get("microbatches", ())):
        return "micro-batches that the user gives one by one: step() takes whole batches only (up to 2.12)"
    if files.case.get("whole_gradients"):
        return None
    program = files.program["programs"][0]["stages"][0]
    replicated = {entry["name"] for entry in files.case["inputs"] if entry["chunk"] == "replicate"}
    for entry in program["inputs"]:
        if entry["name"] in replicated and files.case["input_gradients"] and entry["value"] is not None:
            if program["values"][entry["value"]]["dtype"].startswith(("F", "BF")):
                return "gradients of an input that all micro-batches share: they are one sum, the contract's are of each micro-batch"
    return None


def _traced(files):
    if files.case.get("weight_closures"):
        return "weight gradients apart from autograd: a traced pipe does not trace the user's autograd function"
    if any(step["kind"] == "eval" for step in files.case["steps"]):
        return "evaluation: a traced pipe keeps the mode in which it was traced"
    if any(step["kind"] in ("freeze", "unfreeze") for step in files.case["steps"]):
        return "freezing between steps: a traced pipe keeps what it was traced with"
    if any(e["to"] == "loss" for p in files.program["programs"] for stage in p["stages"] for e in stage["outputs"]):
        return "losses of early stages: a traced pipe does not trace the user's autograd function that begins their backward"
    if files.case["boundary_hooks"]:
        return "hooks that a stage's forward puts on what it takes: a traced pipe does not trace them"
    if files.case["input_gradients"]:
        return "gradients of inputs: a traced pipe computes those of parameters only"
    multi = files.case["schedule"]["name"] not in SINGLE
    program = files.program["programs"][0]
    masked = any(e["from"] == "mask" for stage in program["stages"][1:] for e in stage["inputs"])
    skips = [b for b in program["boundaries"] if b["consumers"] != [b["producer"] + 1]]
    if masked:
        return "masks of later stages: a traced pipe has inputs of its first stage only (pytorch issue 130055)"
    if multi and skips:
        return "values that skip a stage: a traced pipe sends them directly, and schedules of several stages a rank refuse that"
    if any(len(b["consumers"]) > 1 and b["has_gradient"] for b in program["boundaries"]):
        return "a value with two consumers: PyTorch says that it has no backward for it in a traced pipe (pytorch issue 127964)"
    return None
