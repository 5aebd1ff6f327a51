"""The fraction that a decimal number of a graph stands for."""

import math
from fractions import Fraction


def simplest_between(low, high):
    """The fraction of the smallest denominator in [low, high], where 0 < low <= high."""
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    below = whole - 1
    return below + 1 / simplest_between(1 / (high - below), 1 / (low - below))


def fraction(text):
    """The simplest fraction that rounds to this float64: 0.3333333333333333 is a third."""
    number = float(text)
    exact = Fraction(number)
    if exact.denominator == 1:
        return exact
    size = abs(number)
    low, high = ((Fraction(math.nextafter(size, end)) + abs(exact)) / 2 for end in (0, math.inf))
    return simplest_between(low, high) * (1 if number > 0 else -1)
