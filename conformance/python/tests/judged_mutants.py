"""The run of an exact case in which the judge in Python sees the wrong results of each mutant, and why it sees none of others."""

import json
import os

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "mutants", "killers.json")

# In place of those in killers.json, which have other kinds of truth: (case, schedule, ranks).
OTHER_RUNS = {
    "activation-in-bf16": ("exact-attention", "gpipe", 2),
    "buffers-not-updated": ("exact-convolution", "gpipe", 2),
    "buffers-updated-twice": ("exact-convolution", "gpipe", 2),
    "evaluation-in-training-mode": ("exact-convolution-eval", "gpipe", 2),
    "gradient-in-bf16": ("exact-loss-inside-uneven", "gpipe", 2),
    "input-gradient-in-bf16": ("exact-loss-inside-uneven", "gpipe", 2),
    "last-rank-does-not-learn": ("exact-save-momentum", "gpipe", 2),
    "last-step-not-applied": ("exact-save-momentum", "gpipe", 2),
    "learning-rate-of-last-rank": ("exact-save-momentum", "gpipe", 2),
    "loss-not-scaled": ("exact-loss-scale", "gpipe", 2),
    "loss-scaled-twice": ("exact-loss-scale", "gpipe", 2),
    "momentum-only-on-first-rank": ("exact-resume-shared", "gpipe", 2),
    "none-becomes-zeros": ("exact-save-momentum", "gpipe", 2),
    "optimizer-holds-copies": ("exact-save-momentum", "gpipe", 2),
    "parameter-never-updated": ("exact-save-momentum", "gpipe", 2),
    "parameters-in-bf16": ("exact-resume-momentum", "gpipe", 2),
    "recompute-updates-buffers": ("exact-convolution", "gpipe", 2),
    "sum-for-mean": ("exact-mlp-mean", "gpipe", 2),
    "updated-in-bf16": ("exact-save-momentum", "gpipe", 2),
    "updated-twice": ("exact-save-momentum", "gpipe", 2),
    "value-in-bf16": ("exact-attention", "gpipe", 2),
    "zeros-become-none": ("exact-save-unused", "gpipe", 2),
}

# Properties that mutants need (`plumbline mutants --json`) and no exact case has; and the features that such a case has.
NEEDS = {
    ("layers that draw random numbers",): ("random",),
    ("gradients that are clipped",): ("clipping",),
    ("losses that stay in early stages", "losses that are scaled"): ("local-losses", "loss-scaling"),
    ("steps that are skipped when a gradient is not finite",): ("skipped-steps",),
    ("ignored targets",): ("ignored-targets",),
    ("class weights",): ("class-weights",),
    ("a mean loss", "rows that do not divide evenly"): ("mean", "uneven"),
    ("a mean loss", "a batch that the user divides"): ("mean", "divided"),
    ("a resumed run", "buffers"): ("resumed", "buffers"),
}

# They end a run before there are results.
NO_RESULTS = {
    "the schedule is refused": "backward-before-forward backward-done-twice backward-left-out forward-done-twice"
    " forward-left-out reduced-too-early reload-after-the-backward reload-left-out replica-takes-no-part"
    " stages-on-each-others-rank used-ungathered",
    "the batch cannot be divided": "input-divided-along-rows replicated-input-divided",
    "a message has another shape": "receive-smaller-than-send shapes-of-first-microbatch short-message",
    "a rank waits for a message": "drop-gradient drop-value duplicate-gradient duplicate-value one-stream-for-both-directions"
    " swap-channels wrong-rank",
}

# They change no result of an exact case under gpipe.
NO_DIFFERENCE = {
    "sums of whole numbers have no order": "added-in-reverse forwards-in-another-order",
    "the inputs are whole numbers that bf16 has": "inputs-in-bf16",
    "the engine divides by powers of two only": "multiplied-by-reciprocal",
    "no optimizer counts its updates": "one-count-of-updates updates-counted-anew",
    "the third training step is the first that can be stale, and no case that learns has three": "stale-parameters",
    "no evaluation reads what a training step wrote into a buffer": "evaluation-with-first-statistics",
}
# Exact cases that these do change, since the mutants of sums take each micro-batch's gradients from autograd alone.
OTHER_SUMS = ("exact-hooks-after*", "exact-weight-closures*")


def listed(reasons):
    """The mutants of NO_RESULTS or NO_DIFFERENCE."""
    return [mutant for mutants in reasons.values() for mutant in mutants.split()]


def recorded():
    """{mutant: [its two runs in killers.json]}"""
    with open(FILE, encoding="utf-8") as file:
        return json.load(file)


def runs(exact):
    """{mutant: (case, schedule, ranks)}. `exact`: the ids of exact cases. A recorded "error" may be that copies differ, which
    the judge of a report calls a failure: such a mutant is not in NO_RESULTS."""
    found, without = {}, listed(NO_RESULTS)
    for mutant, killers in recorded().items():
        of_exact = sorted((run for run in killers if run["case"] in exact), key=lambda run: run["by"] != "fail")
        if of_exact and mutant not in without:
            found[mutant] = tuple(of_exact[0][member] for member in ("case", "schedule", "ranks"))
    return found | OTHER_RUNS


def unmet(needs):
    """The features of no exact case that a mutant with these needs asks for; None without such a need."""
    return next((features for phrases, features in NEEDS.items() if set(phrases) <= set(needs)), None)
