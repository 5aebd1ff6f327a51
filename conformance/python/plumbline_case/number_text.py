"""Numbers as plumbline prints them: the shortest digits that identify the value in its element type."""

import numpy as np

from .tensors import bf16_to_f32

LONGEST_SHOWN = 1000  # characters of a line that tells what a backend or a file says


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
    """Safe for a terminal: newlines, carriage returns and tabs become spaces, other ASCII control characters and bytes of a name
    that is not UTF-8 \\xNN; those of Unicode, among them what reverses the direction of text, \\uNNNN."""
    return "".join(" " if c in "\n\r\t" else escaped(ord(c)) or c for c in text)


def escaped(code):
    """Empty for a character that a terminal may have."""
    if code < 0x20 or code == 0x7F or 0xD800 <= code <= 0xDFFF:
        return f"\\x{code & 0xFF:02x}"
    # C1, separators of lines, Bidi_Control
    is_control = 0x80 <= code <= 0x9F or code == 0x61C or 0x2028 <= code <= 0x202E or 0x2066 <= code <= 0x2069
    return f"\\u{code:04x}" if is_control or code in (0x200E, 0x200F) else ""


def shown(text):
    """one_line() of at most LONGEST_SHOWN characters: a longer text loses its middle, since messages begin and end with what
    is not from outside."""
    line = one_line(text)
    if len(line) <= LONGEST_SHOWN:
        return line
    begin, end = 2 * LONGEST_SHOWN // 3, LONGEST_SHOWN // 4  # the rest is room for the words between them
    return f"{line[:begin]}... ({len(line) - begin - end} characters left out) ...{line[-end:]}"
