"""The operators of opset 1 in torch: INTERPRETING.md defines each of them."""

from types import MappingProxyType

import torch
import torch.nn.functional as F

from .tensors import DTYPES

OPSET = 1


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """In training, the new running statistics are additional results: values never change in place."""
    if not training:
        return F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    mean, var = running_mean.detach().clone(), running_var.detach().clone()
    return F.batch_norm(input, mean, var, weight, bias, True, momentum, eps), mean, var


def attention(query, key, value, attn_mask, is_causal, scale, enable_gqa):
    return F.scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)


def gradient_hook(self, factor, limit):
    """A user's hook on what an operator made, as in a forward; where no gradient is recorded there is nothing to hook. Nothing
    else reads `self`; what comes from elsewhere belongs to its maker."""
    value = self if self.grad_fn is not None else self.clone()
    if value.requires_grad:
        value.register_hook(lambda gradient: (gradient * factor).clamp(-limit, limit))
    return value


OPS = {
    "aten::_conj": lambda self: torch.conj(self),
    "aten::abs": lambda self: torch.abs(self),
    "aten::add.Tensor": lambda self, other, alpha: torch.add(self, other, alpha=alpha),
    "aten::avg_pool2d": lambda self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
        F.avg_pool2d(self, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad, divisor_override)
    ),
    "aten::batch_norm": batch_norm,
    "aten::bmm": lambda self, mat2: torch.bmm(self, mat2),
    "aten::cat": lambda tensors, dim: torch.cat(tensors, dim),
    "aten::conv2d": F.conv2d,
    "aten::conv_transpose2d.input": F.conv_transpose2d,
    "aten::detach": lambda self: self.detach(),
    "aten::embedding": lambda weight, indices: F.embedding(indices, weight),
    "aten::eq.Tensor": lambda self, other: self == other,
    "aten::expand": lambda self, size: self.expand(size),
    "aten::full": lambda size, fill_value, dtype: torch.full(size, fill_value, dtype=DTYPES[dtype]),
    "aten::gelu": lambda self, approximate: F.gelu(self, approximate=approximate),
    "aten::layer_norm": F.layer_norm,
    "aten::linear": F.linear,
    "aten::lstm.input": torch.lstm,
    "aten::mean.dim": lambda self, dim, keepdim: self.mean(dim, keepdim),
    "aten::mse_loss": lambda self, target, reduction: F.mse_loss(self, target, reduction=["none", "mean", "sum"][reduction]),
    "aten::mul.Tensor": lambda self, other: torch.mul(self, other),
    "aten::permute": lambda self, dims: self.permute(dims),
    "aten::relu": lambda self: torch.relu(self),
    "aten::remainder.Tensor": lambda self, other: torch.remainder(self, other),
    "aten::reshape": lambda self, shape: self.reshape(shape),
    "aten::scaled_dot_product_attention": attention,
    "aten::select.int": lambda self, dim, index: self.select(dim, index),
    "aten::slice.Tensor": lambda self, dim, start, end, step: torch.ops.aten.slice.Tensor(self, dim, start, end, step),
    "aten::softmax.int": lambda self, dim: torch.softmax(self, dim),
    "aten::split_with_sizes": lambda self, split_sizes, dim: torch.split(self, split_sizes, dim),
    "aten::stack": lambda tensors, dim: torch.stack(tensors, dim),
    "aten::sum.dim_IntList": lambda self, dim, keepdim: self.sum(dim, keepdim),
    "aten::tanh": lambda self: torch.tanh(self),
    "aten::to.dtype": lambda self, dtype: self.to(DTYPES[dtype]),
    "aten::view_as_complex": lambda self: torch.view_as_complex(self.contiguous()),
    "aten::view_as_real": lambda self: torch.view_as_real(self.resolve_conj()),
    "plumbline::gradient_hook": gradient_hook,
}


def evaluate(nodes, values, replaced=MappingProxyType({})):
    """Executes the nodes in order; `values` is the list of values by number, which it fills in. `replaced`: functions to call
    in place of those of OPS."""
    for node in nodes:
        arguments = {name: fill_in(argument, values) for name, argument in node["arguments"].items()}
        results = (replaced.get(node["op"]) or OPS[node["op"]])(**arguments)
        if len(node["results"]) == 1 and not isinstance(results, (tuple, list)):
            results = (results,)
        for number, result in zip(node["results"], results, strict=True):
            values[number] = result


def fill_in(argument, values):
    """Constants are JSON; {"value": n} is a value, {"float": "-inf"} a number that JSON lacks."""
    if isinstance(argument, dict):
        if "value" in argument:
            return values[argument["value"]]
        return float(argument["float"])
    if isinstance(argument, list):
        return [fill_in(item, values) for item in argument]
    return argument
