"""The cases that DualPipe 1.0.0 supports, decided before execution by its interface and its own assertions.

Cases that it accepts and computes wrongly are not excluded here: they are run, and delivered unchanged.
"""

from plumbline_case.case import has_isolated_loss, outputs_of

# Operators whose result is a view of an argument.
VIEWS = {
    "aten::expand", "aten::permute", "aten::reshape", "aten::select.int", "aten::slice.Tensor", "aten::split_with_sizes",
}  # fmt: skip


def why_not(case):
    """None if DualPipe can run the case, else the reason."""
    for test in (_micro_batches, _division, _outputs, _borders, _views, _local_losses):
        if reason := test(case):
            return reason
    return None


def crossing(program, border):
    """The boundaries of a program that arrive at stage `border`, in an order that depends on their shapes: those that
    DualPipe transfers there, if stages hand on the values of earlier ones."""
    passing = [b for b in program["boundaries"] if b["producer"] < border <= max(b["consumers"])]
    return sorted(passing, key=lambda b: (b["shape"], b["name"]))


def batch_dimension(case):
    """The dimension along which DualPipe divides inputs, targets and outputs."""
    divided = [entry["chunk"]["dim"] for entry in case.json["inputs"] if entry["chunk"] != "replicate"]
    return divided[0] if divided else case.json["target"]["dim"]


def _micro_batches(case):
    for step in case.steps:
        if len({m["program"] for m in step.get("microbatches", [])}) > 1:
            return "micro-batches of different shapes: set_p2p_tensor_shapes states the same ones for all"
    return None


def _division(case):
    if any(entry["chunk"] == "replicate" for entry in case.json["inputs"]):
        return "an input that every micro-batch gets whole: DualPipe divides every input"
    dimensions = {entry["chunk"]["dim"] for entry in case.json["inputs"]}
    if any(step.get("target") for step in case.steps):
        dimensions.add(case.json["target"]["dim"])
    if len(dimensions) > 1:
        return "inputs or targets divided along several dimensions: DualPipe has one batch_dim"
    return None


def _outputs(case):
    return "outputs in a dict: a module of DualPipe returns a tensor, a tuple or a list" if "outputs" in case.json else None


def _borders(case):
    for program in case.program["programs"]:
        borders = [crossing(program, stage) for stage in range(1, case.stages)]
        types = {b["dtype"] for border in borders for b in border}
        if len(types) > 1:
            return "values of several element types between stages: set_p2p_tensor_dtype states one"
        if any(not dtype.startswith(("F", "BF")) for dtype in types):
            return "integers between stages: DualPipe's receive buffers require gradients"
        if len({tuple(tuple(b["shape"]) for b in border) for border in borders}) > 1:
            return "other shapes between some stages than between others: set_p2p_tensor_shapes states the same ones for all"
    return None


def _views(case):
    """DualPipe frees what a stage has sent, and asserts that it is no view."""
    for program in case.program["programs"]:
        for form in program["stages"][:-1] if program["training"] else ():
            given = {entry["value"] for entry in form["inputs"] if entry["from"] == "model"}
            makers = {value: node for node in form["nodes"] for value in node["results"]}
            for entry in outputs_of(form):
                value = entry["value"]
                if value in given or value in makers and makers[value]["op"] in VIEWS:
                    return "a view from one stage to another: DualPipe asserts that it gets none"
    return None


def _local_losses(case):
    """The adapter begins the backward of such a loss where that of an output of its stage begins."""
    if has_isolated_loss(case.program):
        return "a loss of a stage to which no gradient is sent: the adapter has nowhere to begin its backward"
    return None
