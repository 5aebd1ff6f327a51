"""The operators of opset 1 once more, in NumPy's float64, element by element where that is the definition: the oracle of
jax_operators_test.py. Nothing is shared with the interpreter in JAX."""

import itertools
import math

import numpy as np


def each(function):
    return lambda self, **more: np.vectorize(function, otypes=[float])(self)


def gelu(self, approximate):
    exact = lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2)))
    bent = lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return each(bent if approximate == "tanh" else exact)(self)


def avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    (kernel, pad, step) = (list(x) * 2 if len(x) == 1 else x for x in (kernel_size, padding, stride or kernel_size))
    sides = []
    for size, k, s, p in zip(self.shape[2:], kernel, step, pad):
        begins = list(itertools.takewhile(lambda b: b + k <= size + p, range(-p, size + p, s)))
        if ceil_mode and begins[-1] + k < size + p and begins[-1] + s < size:  # one more, cut off
            begins.append(begins[-1] + s)
        sides.append([(b, min(b + k, size + p)) for b in begins])
    result = np.zeros((*self.shape[:2], *map(len, sides)))
    for (i, (top, bottom)), (j, (left, right)) in itertools.product(*map(enumerate, sides)):
        window = self[:, :, max(top, 0) : bottom, max(left, 0) : right]
        count = (bottom - top) * (right - left) if count_include_pad else window.shape[2] * window.shape[3]
        result[:, :, i, j] = window.sum((2, 3)) / (divisor_override or count)
    return result


def pairs(*lists):
    return [list(x) * 2 if len(x) == 1 else x for x in lists]


def conv2d(input, weight, bias, stride, padding, dilation, groups):
    stride, padding, dilation = pairs(stride, padding, dilation)
    x = np.pad(input, [(0, 0), (0, 0), *((p, p) for p in padding)])
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:])]
    sides = [(size - r) // s + 1 for size, r, s in zip(x.shape[2:], reach, stride)]
    result = np.zeros((len(x), len(weight), *sides))
    of_group, inputs = len(weight) // groups, weight.shape[1]
    for n, o, i, j in np.ndindex(result.shape):
        first = o // of_group * inputs
        top, left = i * stride[0], j * stride[1]
        window = x[n, first : first + inputs, top : top + reach[0] : dilation[0], left : left + reach[1] : dilation[1]]
        result[n, o, i, j] = (window * weight[o]).sum() + (0 if bias is None else bias[o])
    return result


def conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    """Each element of the input adds the kernel, times itself, to the result."""
    stride, padding, more, dilation = pairs(stride, padding, output_padding, dilation)
    sides = [
        (size - 1) * s + d * (k - 1) + 1 + m
        for size, s, d, k, m in zip(input.shape[2:], stride, dilation, weight.shape[2:], more)
    ]
    outputs, of_group = weight.shape[1], len(weight) // groups
    whole = np.zeros((len(input), outputs * groups, *sides))
    for n, c, i, j in np.ndindex(input.shape):
        for o, a, b in np.ndindex(weight.shape[1:]):
            at = c // of_group * outputs + o, i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]
            whole[(n, *at)] += input[n, c, i, j] * weight[c, o, a, b]
    whole = whole[:, :, padding[0] : sides[0] - padding[0], padding[1] : sides[1] - padding[1]]
    return whole if bias is None else whole + bias[:, None, None]


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    result, means, variances = np.zeros(input.shape), running_mean.copy(), running_var.copy()
    for c in range(input.shape[1]):
        x = input[:, c]
        mean, var = (x.mean(), ((x - x.mean()) ** 2).mean()) if training else (running_mean[c], running_var[c])
        result[:, c] = (x - mean) / math.sqrt(var + eps) * (1 if weight is None else weight[c]) + (0 if bias is None else bias[c])
        means[c] += momentum * (mean - means[c])
        variances[c] += momentum * (var * x.size / (x.size - 1) - variances[c])
    return (result, means, variances) if training else result


def layer_norm(input, normalized_shape, weight, bias, eps):
    rows = input.reshape(-1, math.prod(normalized_shape))
    rows = np.stack([(row - row.mean()) / math.sqrt(((row - row.mean()) ** 2).mean() + eps) for row in rows])
    return rows.reshape(input.shape) * (1 if weight is None else weight) + (0 if bias is None else bias)


def softmax(self, dim):
    return np.apply_along_axis(lambda x: np.exp(x) / np.exp(x).sum(), dim, self)


def attention(query, key, value, attn_mask, is_causal, scale, enable_gqa):
    *batch, heads, length, width = query.shape
    result = np.zeros((*batch, heads, length, value.shape[-1]))
    for *at, head, i in np.ndindex(*batch, heads, length):
        at, of_keys = tuple(at), head * key.shape[-3] // heads
        positions = [
            j
            for j in range(key.shape[-2])
            if not (is_causal and j > i) and not (attn_mask is not None and attn_mask.dtype == bool and not attn_mask[i, j])
        ]
        scores = [query[(*at, head, i)] @ key[(*at, of_keys, j)] * (scale or width**-0.5) for j in positions]
        if attn_mask is not None and attn_mask.dtype != bool:
            scores = [score + attn_mask[i, j] for j, score in zip(positions, scores)]
        parts = np.exp(scores) / np.exp(scores).sum()
        result[(*at, head, i)] = sum(p * value[(*at, of_keys, j)] for p, j in zip(parts, positions))
    return result


def lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    x = np.moveaxis(input, 0, 1) if batch_first else input
    h, c = (state.copy() for state in hx)
    y, params = np.zeros((*x.shape[:2], h.shape[-1])), iter(params)
    for layer in range(num_layers):
        w, u, *biases = itertools.islice(params, 4 if has_biases else 2)
        for t in range(len(x)):
            i, f, g, o = np.split(x[t] @ w.T + h[layer] @ u.T + sum(biases), 4, axis=1)
            c[layer] = sigmoid(f) * c[layer] + sigmoid(i) * np.tanh(g)
            y[t] = h[layer] = sigmoid(o) * np.tanh(c[layer])
        x = y.copy()
    return np.moveaxis(x, 0, 1) if batch_first else x, h, c


def taken(self, dim, positions):
    return self[(slice(None),) * dim + (positions,)]


def split(self, split_sizes, dim):
    ends = np.cumsum(split_sizes)
    return tuple(taken(self, dim, slice(end - size, end)) for end, size in zip(ends, split_sizes))


def mse_loss(self, target, reduction):
    squares = (self - target) ** 2
    return [squares, squares.sum() / squares.size, squares.sum()][reduction]


REFERENCES = {
    "aten::_conj": lambda self: self.real - 1j * self.imag,
    "aten::abs": each(abs),
    "aten::add.Tensor": lambda self, other, alpha: self + alpha * other,
    "aten::avg_pool2d": avg_pool2d,
    "aten::batch_norm": batch_norm,
    "aten::bmm": lambda self, mat2: np.stack([a @ b for a, b in zip(self, mat2)]),
    "aten::cat": lambda tensors, dim: np.moveaxis(np.array([x for t in tensors for x in np.moveaxis(t, dim, 0)]), 0, dim),
    "aten::conv2d": conv2d,
    "aten::conv_transpose2d.input": conv_transpose2d,
    "aten::detach": lambda self: self,
    "aten::embedding": lambda weight, indices: np.array([weight[i] for i in indices.flat]).reshape(*indices.shape, -1),
    "aten::eq.Tensor": lambda self, other: self == other,
    "aten::expand": lambda self, size: np.zeros(size) + self,
    "aten::full": lambda size, fill_value, dtype: np.zeros(size) + fill_value,
    "aten::gelu": gelu,
    "aten::layer_norm": layer_norm,
    "aten::linear": lambda input, weight, bias: np.einsum("...i,oi->...o", input, weight) + (0 if bias is None else bias),
    "aten::lstm.input": lstm,
    "aten::mean.dim": lambda self, dim, keepdim: self.mean(tuple(dim) or None, keepdims=keepdim),
    "aten::mse_loss": mse_loss,
    "aten::mul.Tensor": lambda self, other: self * other,
    "aten::permute": lambda self, dims: np.einsum(self, dims_of(self), [*dims]),
    "aten::relu": each(lambda x: max(x, 0)),
    "aten::remainder.Tensor": lambda self, other: self - np.floor(self / other) * other,
    "aten::reshape": lambda self, shape: np.array(list(self.flat)).reshape(shape),
    "aten::scaled_dot_product_attention": attention,
    "aten::select.int": lambda self, dim, index: taken(self, dim, index),
    "aten::slice.Tensor": lambda self, dim, start, end, step: taken(self, dim, range(start, end, step)),
    "aten::softmax.int": softmax,
    "aten::split_with_sizes": split,
    "aten::stack": lambda tensors, dim: np.moveaxis(np.array(tensors), 0, dim),
    "aten::sum.dim_IntList": lambda self, dim, keepdim: self.sum(tuple(dim) or None, keepdims=keepdim),
    "aten::tanh": each(math.tanh),
    "aten::to.dtype": lambda self, dtype: self,
    "aten::view_as_complex": lambda self: self[..., 0] + 1j * self[..., 1],
    "aten::view_as_real": lambda self: np.array([self.real, self.imag]).transpose(*range(1, self.ndim + 1), 0),
}


def dims_of(x):
    return list(range(x.ndim))
