"""The optimizers, in the arithmetic of INTERPRETING.md: torch.optim differs in the last bits."""

import math

import torch


def update(copies, grad, moments, options):
    """Updates all copies of a parameter from its gradient; `moments` is the optimizer's state for it, initially {}."""
    moments["updates"] = moments.get("updates", 0) + 1
    with torch.no_grad():
        {"sgd": sgd, "adamw": adamw}[options["kind"]](copies, grad, moments, options)


def sgd(copies, grad, moments, options):
    if options["momentum"]:
        if "v" in moments:
            moments["v"].mul_(options["momentum"]).add_(grad)
        else:
            moments["v"] = grad.clone()
        grad = moments["v"]
    for parameter in copies:
        parameter.add_(grad, alpha=-options["learning_rate"])


def adamw(copies, grad, moments, options):
    beta1, beta2, rate, t = options["beta1"], options["beta2"], options["learning_rate"], moments["updates"]
    m = moments.setdefault("m", torch.zeros_like(grad))
    v = moments.setdefault("v", torch.zeros_like(grad))
    m.mul_(beta1).add_(grad, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    scale = (v.sqrt() / math.sqrt(1 - beta2**t)).add_(options["epsilon"])
    for parameter in copies:
        parameter.mul_(1 - rate * options["weight_decay"])
        parameter.addcdiv_(m, scale, value=-rate / (1 - beta1**t))
