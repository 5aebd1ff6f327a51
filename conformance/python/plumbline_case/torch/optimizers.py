"""The optimizers and what precedes an update, in the arithmetic of INTERPRETING.md: torch.optim differs in the last bits."""

import math

import torch


def share_of_norm(grad, kind):
    """A parameter's part of the norm over all gradients: the sum of its squares, or its largest absolute value."""
    exact = grad.detach().double()
    if kind == 2:
        return torch.sum(torch.mul(exact, exact))
    return exact.abs().max() if exact.numel() else exact.new_zeros(())


def norm_of(shares, kind):
    """The norm over all gradients, from {parameter: its share} of every parameter that has one."""
    ordered = [float(shares[name]) for name in sorted(shares)]
    if kind != 2:
        return math.nan if any(map(math.isnan, ordered)) else max(ordered, default=0.0)
    total = 0.0
    for share in ordered:  # one by one: sum() compensates for rounding from Python 3.12 on
        total += share
    return math.sqrt(total)


def clip_factor(norm, clip):
    """What multiplies every gradient; None: nothing does."""
    factor = clip["max"] / (norm + clip["epsilon"])
    return factor if factor < 1 else None


def scale(tensor, number):
    """In place, as C++ does it: `tensor.mul_(number)` in Python is the kernel of mul_.Tensor, which does not round the number
    to the 16 bits of the tensor's elements."""
    return torch.ops.aten.mul_.Scalar(tensor, number)


def begin_states(case, keys):
    """{(stage, parameter): the optimizer's state of this copy} before the first step; {} for each if the case does not
    resume."""
    saved = case.optimizer_state()
    return {key: {e: int(t) if e == "step" else t.clone() for e, t in saved.get(key[1], {}).items()} for key in keys}


def put_states(put, states):
    """Puts {(stage, parameter): state} as results: put(kind, stage, microbatch, name, tensor)."""
    for (_, name), state in states.items():
        for entry, value in state.items():
            put("optimizer-state", None, None, f"{name}/{entry}", torch.as_tensor(value))


def update(copies, grad, state, options):
    """Updates all copies of a parameter from its gradient; `state` is the optimizer's for it, initially {}."""
    with torch.no_grad():
        {"sgd": sgd, "adamw": adamw}[options["kind"]](copies, grad, state, options)


def sgd(copies, grad, state, options):
    if options.get("weight_decay"):
        grad = grad.add(copies[0], alpha=options["weight_decay"])
    if options["momentum"]:
        if "momentum_buffer" in state:
            scale(state["momentum_buffer"], options["momentum"]).add_(grad)
        else:
            state["momentum_buffer"] = grad.clone()
        grad = state["momentum_buffer"]
    for parameter in copies:
        parameter.add_(grad, alpha=-options["learning_rate"])


def adamw(copies, grad, state, options):
    t = state["step"] = state.get("step", 0) + 1
    beta1, beta2, rate = options["beta1"], options["beta2"], options["learning_rate"]
    m = state.setdefault("exp_avg", torch.zeros_like(grad))
    v = state.setdefault("exp_avg_sq", torch.zeros_like(grad))
    scale(m, beta1).add_(grad, alpha=1 - beta1)
    scale(v, beta2).addcmul_(grad, grad, value=1 - beta2)
    divisor = (v.sqrt() / math.sqrt(1 - beta2**t)).add_(options["epsilon"])
    for parameter in copies:
        scale(parameter, 1 - rate * options["weight_decay"])
        parameter.addcdiv_(m, divisor, value=-rate / (1 - beta1**t))
