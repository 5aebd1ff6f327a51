"""Numbers as plumbline prints them: the shortest digits that identify the value in its element type."""

import numpy as np

from .tensors import bf16_to_f32


def element_text(stored, index):
    """The text of element `index`, row-major. Integers other than I64 are printed as F32 numbers."""
    element = stored.array.reshape(-1)[index]
    if stored.dtype == "I64":
        return str(int(element))
    if stored.dtype == "BF16":
        element = bf16_to_f32(element)
    return shortest(np.float64(element) if stored.dtype == "F64" else np.float32(element))


def element_bits(stored, index):
    """ "0x7fc00000": tells apart two NaNs."""
    return "0x" + stored.array.reshape(-1)[index].tobytes()[::-1].hex()


def shortest(value):
    """The text of C++'s std::to_chars for a numpy.float32 or numpy.float64: its shortest digits, in the shorter one of
    the fixed and the scientific form."""
    sign = "-" if np.signbit(value) else ""
    if np.isnan(value) or np.isinf(value):
        return sign + ("nan" if np.isnan(value) else "inf")
    if value == 0:
        return sign + "0"
    mantissa, _, power = np.format_float_scientific(abs(value), unique=True, trim="-").partition("e")
    digits = mantissa.replace(".", "")
    exponent = int(power)  # of the first digit
    scientific = f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{exponent:+03d}"
    if exponent >= len(digits) - 1:
        fixed = str(int(abs(float(value))))  # every digit of a large number, as printf's %f
    elif exponent >= 0:
        fixed = f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    else:
        fixed = f"0.{'0' * (-exponent - 1)}{digits}"
    return sign + (fixed if len(fixed) <= len(scientific) else scientific)


def one_line(text):
    """Safe for a terminal: newlines, carriage returns and tabs become spaces, other control characters \\xNN."""
    return "".join(" " if c in "\n\r\t" else f"\\x{ord(c):02x}" if ord(c) < 0x20 or ord(c) == 0x7F else c for c in text)
