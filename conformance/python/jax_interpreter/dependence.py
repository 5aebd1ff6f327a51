"""Which values the roots of a backward depend on: *None or zeros* in INTERPRETING.md. JAX has only zeros."""

from numerics import is_differentiable


def reached(form, roots):
    """The numbers of the values of a stage that one of `roots`, values too, depends on, through real and complex numbers only."""
    flows = lambda value: is_differentiable(form["values"][value]["dtype"])
    found = {root for root in roots if root is not None and flows(root)}
    for node in reversed(form["nodes"]):
        if node["op"] == "aten::detach" or not found.intersection(differentiable(node)):
            continue
        found.update(value for value in read_by(list(node["arguments"].values())) if flows(value))
    return found


def differentiable(node):
    return node["results"][:1] if node["op"] == "aten::batch_norm" else node["results"]


def read_by(argument):
    if isinstance(argument, list):
        return [value for item in argument for value in read_by(item)]
    return [argument["value"]] if isinstance(argument, dict) and "value" in argument else []
