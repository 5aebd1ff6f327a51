"""What counts as the same: the whole list. A certificate repeats it with its version, and docs/proof.md has it."""

VERSION = 1

NORMALISATIONS = {
    "views": "a view (transpose, slice, expand, detach, alias) is the elements it shows of the value behind it",
    "copies": "a copy without a change of dtype (clone, contiguous, copy_, a message) is the value it copies",
    "pieces": "elements of a cat, a stack or the backward of a slice or select, or of a sum of such, are elements of the one"
    " value that they come from (the others add zeros)",
    "composites": "an operator that LibTorch composes of others is those others",
    "casts": "a change of dtype is one operator, cast, whether _to_copy or copy_ makes it",
    "in-place": "an operator in place is the functional one, and its operand's memory holds the result: add_ is add",
    "fills": "zeros, ones, full, their _like and new_ forms, fill_ and zero_ are one leaf: the number, dtype, sizes",
    "numbers": "a number passed where a tensor is expected is that number",
    "zeros": "adding a tensor of zeros of the same dtype and sizes changes nothing (but the sign of a zero)",
    "commutes": "a + b is b + a; the order of three addends counts",
    "one element": "a sum over one element is that element",
    "ones": "multiplying or dividing by the number 1 changes nothing, and a tensor of ones times a number is a fill",
    "places": "device, layout, memory_format and pin_memory say where elements lie, not which",
    "masks": "a result of an operator with an output_mask does not depend on which other results are asked for",
    "unread": "batch norm in training, and its backward, compute from the micro-batch, not from running statistics",
}

COPIES = {f"aten::{name}" for name in "clone contiguous copy_ _to_copy detach alias lift_fresh lift".split()}
FILLS = {
    f"aten::{name}"
    for name in "zeros zeros_like new_zeros zero_ ones ones_like new_ones full full_like new_full fill_ scalar_tensor"
    " _efficientzerotensor".split()
}
RESERVES = {f"aten::{name}" for name in "empty empty_like empty_strided new_empty new_empty_strided".split()}
PLACES = ("device", "layout", "memory_format", "pin_memory")
BATCH_NORMS = {"aten::native_batch_norm": 5, "aten::native_batch_norm_backward": 7}  # the argument "training"


def is_unread(name, arguments, number):
    """Whether no result depends on that argument; `arguments`: [(its name, value)]."""
    if arguments[number][0] in ("output_mask", *PLACES):
        return True
    return number in (3, 4) and name in BATCH_NORMS and arguments[BATCH_NORMS[name]][1]


def functional_name(schema):
    """With the overload, if it has one."""
    name, own = schema.name, schema.arguments[0].alias_info if schema.arguments else None
    if own is not None and own.is_write and name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    return f"{name}.{schema.overload_name}" if schema.overload_name else name
