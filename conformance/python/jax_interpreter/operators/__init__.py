"""The operators of opset 1 in JAX, by family. Each is called as operator(dtype, **arguments): `dtype` is the element type of
its (first) result. Derivatives are JAX's: none is written here."""

from . import attention, elementwise, indexing, normalization, products, recurrent, shapes, sums, windows

FAMILIES = (elementwise, sums, shapes, indexing, products, windows, normalization, attention, recurrent)
OPERATORS = {name: operator for family in FAMILIES for name, operator in family.OPERATORS.items()}


def evaluate(form, values):
    """Executes the nodes of a stage in order; `values` is {number: array}, to which it adds the results."""
    for node in form["nodes"]:
        arguments = {name: filled_in(argument, values) for name, argument in node["arguments"].items()}
        dtype = form["values"][node["results"][0]]["dtype"]
        made = OPERATORS[node["op"]](dtype, **arguments)
        made = made if isinstance(made, tuple) else (made,)
        values.update(zip(node["results"], made, strict=True))


def filled_in(argument, values):
    """Constants are JSON; {"value": n} is a value, {"float": "-inf"} a number that JSON lacks."""
    if isinstance(argument, dict):
        return values[argument["value"]] if "value" in argument else float(argument["float"])
    return [filled_in(item, values) for item in argument] if isinstance(argument, list) else argument
