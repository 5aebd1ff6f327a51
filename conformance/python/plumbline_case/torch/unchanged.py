"""The user's module is the user's: an engine to which it was given must leave it as it is, but for values and gradients."""

import contextlib


@contextlib.contextmanager
def unchanged(modules):
    """In its body, modes, names, parameters, buffers, flags and hooks of the modules stay as they are; raises ValueError, which
    says what did not."""
    before = [_facts(module) for module in modules]
    yield
    for module, facts in zip(modules, before, strict=True):
        now = _facts(module)
        for what in facts | now:
            if facts.get(what) != now.get(what):
                raise ValueError(f"the user's module is not as it was given: {what}: {now.get(what)} instead of {facts.get(what)}")


def _facts(module):
    facts = {}
    for name, inner in module.named_modules(remove_duplicate=False):
        at = f"module '{name}'"
        facts[f"{at}, the mode"] = "training" if inner.training else "evaluation"
        facts[f"{at}, its identity"] = id(inner)
        facts[f"{at}, hooks"] = {kind: len(hooks) for kind, hooks in vars(inner).items() if kind.endswith("_hooks") and hooks}
    for kind, found in (("parameter", module.named_parameters), ("buffer", module.named_buffers)):
        for name, tensor in found(remove_duplicate=False):
            at = f"{kind} '{name}'"
            facts[f"{at}, its identity"] = id(tensor)
            facts[f"{at}, whether it requires a gradient"] = tensor.requires_grad
            facts[f"{at}, hooks"] = len(tensor._backward_hooks or ()) + len(tensor._post_accumulate_grad_hooks or ())
    return facts
