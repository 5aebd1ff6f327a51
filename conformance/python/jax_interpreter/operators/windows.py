"""Convolutions and pooling of [n, c, h, w]. A list of one number means that number in both dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
from numerics import rounded_once

LAYOUT = ("NCHW", "OIHW", "NCHW")


def both(numbers):
    return list(numbers) * 2 if len(numbers) == 1 else list(numbers)


def with_bias(image, bias):
    return image if bias is None else image + bias[:, None, None]


@rounded_once
def conv2d(input, weight, bias, stride, padding, dilation, groups):
    image = jax.lax.conv_general_dilated(
        input, weight, both(stride), [(p, p) for p in both(padding)], rhs_dilation=both(dilation),
        dimension_numbers=LAYOUT, feature_group_count=groups,
    )  # fmt: skip
    return with_bias(image, bias)


@rounded_once
def conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    """A convolution of the input with stride - 1 zeros between its elements, with the mirrored kernel."""
    channels, outputs, *kernel = weight.shape
    mirrored = jnp.flip(weight, (2, 3)).reshape(groups, channels // groups, outputs, *kernel)
    mirrored = mirrored.swapaxes(1, 2).reshape(groups * outputs, channels // groups, *kernel)
    reach = [d * (k - 1) - p for d, k, p in zip(both(dilation), kernel, both(padding))]
    image = jax.lax.conv_general_dilated(
        input, mirrored, (1, 1), [(r, r + more) for r, more in zip(reach, both(output_padding))],
        lhs_dilation=both(stride), rhs_dilation=both(dilation), dimension_numbers=LAYOUT, feature_group_count=groups,
    )  # fmt: skip
    return with_bias(image, bias)


@rounded_once
def avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    kernel, padding = both(kernel_size), both(padding)
    stride = both(stride) or kernel
    sides, counts = [], []
    for size, k, s, p in zip(self.shape[2:], kernel, stride, padding):
        windows = -(-(size + 2 * p - k) // s) + 1 if ceil_mode else (size + 2 * p - k) // s + 1
        if ceil_mode and (windows - 1) * s >= size + p:  # a window that begins in the padding after the image
            windows -= 1
        sides.append((p, max((windows - 1) * s + k - size - p, 0)))
        first, after = (-p, size + p) if count_include_pad else (0, size)
        begins = np.arange(windows) * s - p
        counts.append(np.minimum(begins + k, after) - np.maximum(begins, first))
    sums = jax.lax.reduce_window(
        self, np.zeros((), self.dtype)[()], jax.lax.add, (1, 1, *kernel), (1, 1, *stride), ((0, 0), (0, 0), *sides)
    )
    sums = sums[:, :, : len(counts[0]), : len(counts[1])]
    return sums / (divisor_override or np.outer(*counts).astype(self.dtype))


OPERATORS = {
    "aten::avg_pool2d": avg_pool2d,
    "aten::conv2d": conv2d,
    "aten::conv_transpose2d.input": conv_transpose2d,
}
