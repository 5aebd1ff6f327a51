"""The cases that DeepSpeed's PipelineEngine supports, decided before execution by its documentation and its own interface.

Cases that it accepts and computes wrongly are not excluded here: they are run, and delivered unchanged.
"""

from plumbline_case.case import has_isolated_loss, writes_buffers

CLIP_EPSILON = 1e-6  # of DeepSpeed's clip_grad_norm_, which has no option for it


def why_not(case):
    """None if DeepSpeed can run the case, else the reason."""
    for test in (_dtype, _gradients, _steps, _optimizer, _evaluations, _local_losses, _replicas):
        if reason := test(case):
            return reason
    return None


def _dtype(case):
    refused = {p["dtype"] for p in case.program["parameters"]} - {"F32", "BF16"}
    if refused:
        return f"{min(refused)}: DeepSpeed on the CPU refuses to reduce gradients but of F32 and BF16 (F16: on few machines)"
    return None


def _gradients(case):
    if case.json["input_gradients"]:
        return "gradients of inputs: DeepSpeed detaches what it loads for the first stage"
    divide_by = case.json["gradients"]["divide_by"]
    if divide_by not in (1, case.microbatches):
        return f"gradients divided by {divide_by}: DeepSpeed divides losses by gradient_accumulation_steps"
    if divide_by != 1 and _has_hooks_with_a_limit(case.program):
        return "hooks with a limit on undivided gradients: DeepSpeed divides each loss before its backward"
    return None


def _has_hooks_with_a_limit(program):
    return any(
        node["op"] == "plumbline::gradient_hook" and node["arguments"]["limit"] != {"float": "inf"}
        for form in program["programs"]
        for stage in form["stages"]
        for node in stage["nodes"]
    )


def _steps(case):
    """train_batch() computes the gradients, updates the parameters and drops the gradients."""
    kinds = [step["kind"] for step in case.steps]
    accumulated = False
    for kind, before, after in zip(kinds, [None, *kinds], [*kinds[1:], None], strict=False):
        if kind == "train" and accumulated:
            return "gradients that several steps accumulate: train_batch() ends by dropping them"
        if kind == "train" and case.json["optimizer"] and after != "optimizer":
            return "a train step without an optimizer step: train_batch() does both"
        if kind == "optimizer" and before != "train":
            return "an optimizer step apart from its train step: train_batch() does both"
        if kind == "read" and before != "optimizer":
            return "gradients read after other steps: train_batch() ends by dropping them"
        accumulated = (accumulated or kind == "train") and kind != "zero_grad"
    return None


def _optimizer(case):
    options = case.json["optimizer"] or {}
    if options.get("loss_scale") or options.get("skip_nonfinite"):
        return "loss scaling, or skipping steps: DeepSpeed does either with its optimizers of mixed precision only"
    clip = options.get("clip")
    if clip and clip["norm"] != 2:
        return "clipping by the infinity norm: gradient_clipping is a limit for the 2-norm"
    if clip and clip["epsilon"] != CLIP_EPSILON:
        return f"clipping with epsilon {clip['epsilon']}: DeepSpeed's is {CLIP_EPSILON}"
    return None


def _evaluations(case):
    outputs = [entry for program in case.program["programs"] for entry in program["stages"][-1]["outputs"]]
    without_loss = any(step["kind"] == "eval" and not step["loss"] for step in case.steps)
    if without_loss and any(entry["to"] == "model" and entry["value"] is None for entry in outputs):
        return "an evaluation without a loss of a model that returns None: DeepSpeed keeps what it returns, tensors only"
    return None


def _local_losses(case):
    """The adapter begins the backward of such a loss where that of an output of its stage begins."""
    if has_isolated_loss(case.program):
        return "a loss of a stage to which no gradient is sent: DeepSpeed runs no backward there"
    return None


def _replicas(case):
    if case.replicas > 1 and writes_buffers(case.program):
        return "stages that write buffers: each replica's are those of its own micro-batches"
    return None
