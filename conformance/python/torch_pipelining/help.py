"""What PyTorch's pipelining leaves to its user, and this adapter does: these cases test it together with PyTorch. With
--alone they run without it, to say what PyTorch does alone."""

from plumbline_case.case import shape_of

# By name: the words of `describe`.
HELP = {
    "copies": "gradients of a parameter that is on several ranks are summed over them",
    "skips": "values for a later stage than the next are handed on by the stages between",
    "local losses": "losses of early stages are backpropagated by an autograd function in the stage",
    "norm": "a norm and a check for finite gradients are reduced over ranks",
    "scalars": "outputs without dimensions are not asked for, but recorded in the last stage",
    "target": "a loss without a target gets an unused one",
    "messages": "the first messages of 2.11 from a rank to itself are omitted",
    "loss": "losses are divided, added and scaled in the loss function",
    "replicas": "losses are multiplied by the number of replicas where the case has their sum: DDP and FSDP have their mean",
}
# PyTorch has no place for these.
NECESSARY = {
    "skips": "a value that skips a stage: a PipelineStage sends to the next one only",
    "local losses": "a loss of an early stage: PyTorch's backward begins at the loss of the last one",
    "norm": "a norm or a check of all gradients: PyTorch's pipelining has none over ranks",
}


def helps(traced):
    """The words of `describe`: a traced pipe has no stages of the adapter, and so none of their help."""
    return [words for name, words in HELP.items() if not (traced and name in ("skips", "local losses"))]


def help_of(files, version):
    """The names of the help that a case needs."""
    case, programs = files.case, files.program["programs"]
    rank_of = {stage: rank for rank, stages in enumerate(files.placement()) for stage in stages}
    optimizer = case["optimizer"] or {}
    several = len(files.rows) > 1
    needs = {
        "copies": any(len({rank_of[s] for s in p["stages"]}) > 1 for p in files.program["parameters"]),
        "skips": any(b["consumers"] != [b["producer"] + 1] for p in programs for b in p["boundaries"]),
        "local losses": any(e["to"] == "loss" for p in programs for stage in p["stages"] for e in stage["outputs"]),
        "norm": several and ("clip" in optimizer or "skip_nonfinite" in optimizer),
        "scalars": any(shape_of(stage, e) == [] for p in programs for stage in p["stages"][-1:] for e in stage["outputs"]),
        "target": case["loss"]["kind"] in ("sum", "output") and any(
            step.get("loss") and not step["target"] for step in case["steps"]
        ),
        "messages": [int(part) for part in version.split(".")[:2]] < [2, 13]
        and any(rank_of.get(stage + 1) == rank for stage, rank in rank_of.items()),
    }
    return {name for name, needed in needs.items() if needed}


def why_not_alone(files, version):
    """None if the case needs help and PyTorch can do without, else the reason."""
    needed = help_of(files, version)
    if not needed:
        return "it needs none of the adapter's help: the backend with help runs it"
    return next((NECESSARY[name] for name in sorted(needed) if name in NECESSARY), None)
