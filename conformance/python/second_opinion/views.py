"""Choices of elements, as loops: "16+4x8,4x1," is 4 times 4 positions, 16 and on, 8 and then 1 apart."""

import re

import numpy as np

from second_opinion.errors import Unsupported


def positions(loops):
    """The last loop runs fastest."""
    match = re.fullmatch(r"(\d+)\+((?:\d+x-?\d+,)*)", loops)
    if not match:
        raise Unsupported(f"a view whose elements no loops describe: '{loops}'; expected loops such as 16+4x8,4x1,")
    result = np.array([int(match[1])])
    for count, stride in re.findall(r"(\d+)x(-?\d+),", match[2]):
        result = np.add.outer(result, np.arange(int(count)) * int(stride)).ravel()
    return result
