"""What each operator of LibTorch computes over the real numbers, element by element.

Each function gets arrays of elements and the other arguments under the names of the operator's schema, and returns an
array of expressions.
"""

import inspect

import numpy as np

from second_opinion.elements import difference, is_equal, is_greater, number, product, quotient, total
from second_opinion.errors import Unsupported

OPERATORS = {}
NONE, MEAN, SUM = 0, 1, 2  # a loss's reduction


def operator(name):
    def add(function):
        OPERATORS[name] = function
        return function

    return add


def apply(name, arguments):
    """An array of expressions. `arguments` is {name: array of elements, list, Fraction, bool or None}."""
    function = OPERATORS.get(name)
    if function is None:
        raise Unsupported(f"operator {name} has no meaning here yet; known are {', '.join(sorted(OPERATORS))}")
    expected = list(inspect.signature(function).parameters)
    if list(arguments) != expected:
        raise Unsupported(f"operator {name} has the arguments {', '.join(arguments)}; expected {', '.join(expected)}")
    return function(**arguments)


def each(function, *arrays):
    """An array of function(elements at one place), after broadcasting."""
    arrays = np.broadcast_arrays(*arrays)
    result = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(result.shape):
        result[place] = function(*(array[place] for array in arrays))
    return result


def expressions(shape, function):
    """An array of function(*place)."""
    result = np.empty(shape, dtype=object)
    for place in np.ndindex(result.shape):
        result[place] = function(*place)
    return result


def summed(array, dims, keepdim):
    """The sums over some dimensions; no dimensions are all."""
    dims = sorted(dim % array.ndim for dim in dims or range(array.ndim))
    kept = [dim for dim in range(array.ndim) if dim not in dims]
    rows = array.transpose(kept + dims).reshape([array.shape[dim] for dim in kept] + [-1])
    result = expressions(rows.shape[:-1], lambda *place: total(rows[place]))
    return np.expand_dims(result, tuple(dims)) if keepdim else result


def scaled(factor, array):
    return each(lambda x: product(number(factor), x), array)


def dot(a, b):
    return total(product(x, y) for x, y in zip(a, b, strict=True))


def products(a, b):
    """Of two matrices."""
    return expressions((a.shape[0], b.shape[1]), lambda i, j: dot(a[i], b[:, j]))


def require(condition, text):
    if not condition:
        raise Unsupported(text)


# --- pointwise ---


@operator("aten::add.Tensor")
def add(self, other, alpha):
    return each(lambda x, y: total((x, product(number(alpha), y))), self, other)


@operator("aten::sub.Tensor")
def sub(self, other, alpha):
    return each(lambda x, y: difference(x, product(number(alpha), y)), self, other)


@operator("aten::mul.Tensor")
def mul(self, other):
    return each(product, self, other)


@operator("aten::mul.Scalar")
def mul_scalar(self, other):
    return scaled(other, self)


@operator("aten::div.Tensor")
def div(self, other):
    return each(quotient, self, other)


@operator("aten::div.Scalar")
def div_scalar(self, other):
    return each(lambda x: quotient(x, number(other)), self)


@operator("aten::neg")
def neg(self):
    return scaled(-1, self)


def sign_of(x):
    return difference(is_greater(x, number(0)), is_greater(number(0), x))


@operator("aten::sgn")
def sgn(self):
    return each(sign_of, self)


@operator("aten::abs")
def absolute(self):
    return each(lambda x: product(x, sign_of(x)), self)


@operator("aten::relu")
def relu(self):
    return each(lambda x: product(x, is_greater(x, number(0))), self)


@operator("aten::threshold_backward")
def threshold_backward(grad_output, self, threshold):
    return each(lambda g, x: product(g, is_greater(x, number(threshold))), grad_output, self)


@operator("aten::eq.Tensor")
def eq(self, other):
    return each(is_equal, self, other)


# Of gelu it is only used that it is a function with a derivative.
@operator("aten::gelu")
def gelu(self, approximate):
    return each(lambda x: (f"gelu {approximate}", x), self)


@operator("aten::gelu_backward")
def gelu_backward(grad_output, self, approximate):
    return each(lambda g, x: product(g, (f"derivative of gelu {approximate}", x)), grad_output, self)


# --- sums ---


@operator("aten::sum")
def sum_all(self, dtype):
    require(dtype is None, f"aten::sum with dtype {dtype}; expected None")
    return summed(self, [], False)


@operator("aten::sum.dim_IntList")
def sum_dims(self, dim, keepdim, dtype):
    require(dtype is None, f"aten::sum.dim_IntList with dtype {dtype}; expected None")
    return summed(self, dim, keepdim)


@operator("aten::mean")
def mean(self, dtype):
    return each(lambda x: quotient(x, number(self.size)), sum_all(self, dtype))


# --- products ---


@operator("aten::mm")
def mm(self, mat2):
    return products(self, mat2)


@operator("aten::addmm")
def addmm(self, mat1, mat2, beta, alpha):
    sum_of = lambda x, y: total((product(number(beta), x), product(number(alpha), y)))
    return each(sum_of, self, products(mat1, mat2))


@operator("aten::bmm")
def bmm(self, mat2):
    return np.stack([products(a, b) for a, b in zip(self, mat2, strict=True)])


# --- losses ---


def reduced(array, reduction):
    if reduction == NONE:
        return array
    return mean(array, None) if reduction == MEAN else sum_all(array, None)


@operator("aten::mse_loss")
def mse_loss(self, target, reduction):
    return reduced(each(lambda x, t: product(difference(x, t), difference(x, t)), self, target), reduction)


@operator("aten::mse_loss_backward")
def mse_loss_backward(grad_output, self, target, reduction):
    factor = number(2) if reduction != MEAN else quotient(number(2), number(self.size))
    return each(lambda g, x, t: product(factor, g, difference(x, t)), grad_output, self, target)


# --- choices of elements ---


@operator("aten::cat")
def cat(tensors, dim):
    return np.concatenate(tensors, axis=dim)


@operator("aten::stack")
def stack(tensors, dim):
    return np.stack(tensors, axis=dim)


def filled_in(shape, place, array):
    """Zeros, and the array at a place."""
    result = expressions(tuple(shape), lambda *_: number(0))
    result[place] = array
    return result


@operator("aten::slice_backward")
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    whole = (slice(None),) * (dim % len(input_sizes))
    return filled_in(input_sizes, (*whole, slice(start, end, step)), grad_output)


@operator("aten::select_backward")
def select_backward(grad_output, input_sizes, dim, index):
    whole = (slice(None),) * (dim % len(input_sizes))
    return filled_in(input_sizes, (*whole, index), grad_output)


# --- tables: an index is a number like any other, and chooses the row that it equals ---


@operator("aten::embedding")
def embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    def element(*place):
        *index, column = place
        chosen = indices[tuple(index)]
        return total(product(is_equal(chosen, number(row)), w) for row, w in enumerate(weight[:, column]))

    return expressions((*indices.shape, weight.shape[1]), element)


@operator("aten::embedding_dense_backward")
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    require(not scale_grad_by_freq, "aten::embedding_dense_backward with scale_grad_by_freq; expected False")
    gradients, chosen = grad_output.reshape(-1, grad_output.shape[-1]), indices.ravel()

    def element(row, column):
        if row == padding_idx:
            return number(0)
        return total(product(is_equal(index, number(row)), g) for index, g in zip(chosen, gradients[:, column]))

    return expressions((num_weights, gradients.shape[1]), element)
