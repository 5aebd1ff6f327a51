"""The operators of opset 1 in JAX, by family. Each is called as operator(dtype, **arguments): `dtype` is the element type of
its (first) result. Derivatives are JAX's: none is written here."""

import functools
import json

import jax

from . import attention, elementwise, indexing, normalization, products, recurrent, shapes, sums, value_hooks, windows

FAMILIES = (elementwise, sums, shapes, indexing, products, windows, normalization, attention, recurrent, value_hooks)
OPERATORS = {name: operator for family in FAMILIES for name, operator in family.OPERATORS.items()}


def evaluate(form, values):
    """Executes the nodes of a stage in order; `values` is {number: array}, to which it adds the results."""
    for node in form["nodes"]:
        dtype = form["values"][node["results"][0]]["dtype"]
        arrays = []
        arguments = {name: taken_out(argument, values, arrays) for name, argument in node["arguments"].items()}
        made = compiled(node["op"], dtype, json.dumps(arguments))(*arrays)
        values.update(zip(node["results"], made if isinstance(made, tuple) else (made,), strict=True))


def taken_out(argument, values, arrays):
    """The argument with positions in `arrays`, to which it adds them, in place of its values."""
    if isinstance(argument, list):
        return [taken_out(item, values, arrays) for item in argument]
    if not isinstance(argument, dict) or "value" not in argument:
        return argument
    arrays.append(values[argument["value"]])
    return {"value": len(arrays) - 1}


@functools.cache
def compiled(op, dtype, arguments):
    """A function of the arrays in the arguments. Each operator is compiled by itself, once for each call of it that differs
    in its constants or shapes: a whole stage takes longer to compile than to run, and a primitive at a time to dispatch."""
    form = json.loads(arguments)
    return jax.jit(lambda *arrays: OPERATORS[op](dtype, **{name: filled_in(a, arrays) for name, a in form.items()}))


def forget_beyond(number):
    """Drops all that is compiled, a megabyte or two for each, if it is for more calls than so many."""
    if compiled.cache_info().currsize > number:
        compiled.cache_clear()
        jax.clear_caches()


def filled_in(argument, arrays):
    """{"float": "-inf"} is a number that JSON lacks."""
    if isinstance(argument, dict):
        return arrays[argument["value"]] if "value" in argument else float(argument["float"])
    return [filled_in(item, arrays) for item in argument] if isinstance(argument, list) else argument
