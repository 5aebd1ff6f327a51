"""The models of bench/micro/filled_model.h in Python: the same operators on the same numbers. Needs only torch."""

import ctypes
import json
import struct

import torch
import torch.nn.functional as F

HEAD_WIDTH = 64
SMALL, LARGE = 13, 8  # exponents: within 1/16, within 2


def fill(sizes, stream, exponent, middle):
    """The same bits as fill() in C++."""
    numel = torch.Size(sizes).numel()
    i = torch.arange(numel, dtype=torch.int64)
    v = (i * i % 1021 + 2 * ((7919 * i + stream) % 509)) % 1021 - 510
    return (middle + v.double() * 2.0**-exponent).float().reshape(sizes)


class Shape:
    """The text form of a model, such as "mlp:512,1,1024,6"."""

    def __init__(self, text):
        kind, numbers = text.split(':')
        self.text, self.transformer = text, kind == 'transformer'
        self.rows, self.length, self.width, self.layers = map(int, numbers.split(','))

    def sizes(self, microbatches=1):
        rows = microbatches * self.rows
        return (rows, self.length, self.width) if self.transformer else (rows * self.length, self.width)


class Linear(torch.nn.Module):
    def __init__(self, fan_in, out, stream):
        super().__init__()
        self.weight = torch.nn.Parameter(fill((out, fan_in), stream, LARGE + (fan_in.bit_length() - 1) // 2, 0))
        self.bias = torch.nn.Parameter(fill((out,), stream + 1, SMALL, 0))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Norm(torch.nn.Module):
    def __init__(self, width, stream):
        super().__init__()
        self.weight = torch.nn.Parameter(fill((width,), stream, SMALL, 1))
        self.bias = torch.nn.Parameter(fill((width,), stream + 1, SMALL, 0))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class Block(torch.nn.Module):
    def __init__(self, width, stream):
        super().__init__()
        self.norm1 = Norm(width, stream)
        self.qkv = Linear(width, 3 * width, stream + 2)
        self.proj = Linear(width, width, stream + 4)
        self.norm2 = Norm(width, stream + 6)
        self.up = Linear(width, 4 * width, stream + 8)
        self.down = Linear(4 * width, width, stream + 10)

    def forward(self, x):
        rows, length, width = x.shape
        heads = (rows, length, width // HEAD_WIDTH, HEAD_WIDTH)
        q, k, v = (part.view(heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = x + self.proj(mixed.transpose(1, 2).reshape(x.shape))
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class Layers(torch.nn.Module):
    """The layers first, ..., end - 1 of a model. Parameters have the names that they have in the whole model."""

    def __init__(self, shape, first, end):
        super().__init__()
        self.gelu_after = [not shape.transformer and i + 1 < shape.layers for i in range(first, end)]
        self.layers = torch.nn.ModuleDict()
        for i in range(first, end):
            if shape.transformer:
                self.layers[str(i)] = Block(shape.width, 2 + 12 * i)
            else:
                self.layers[str(i)] = Linear(shape.width, shape.width, 2 + 2 * i)

    def forward(self, x):
        for layer, gelu in zip(self.layers.values(), self.gelu_after):
            x = layer(x)
            if gelu:
                x = F.gelu(x)
        return x


def write_tensors(path, tensors):
    """A safetensors file of float32 tensors by name."""
    header, data = {}, []
    offset = 0
    for name, tensor in tensors.items():
        tensor = tensor.contiguous()
        size = tensor.numel() * tensor.element_size()
        header[name] = {'dtype': 'F32', 'shape': list(tensor.shape), 'data_offsets': [offset, offset + size]}
        data.append(ctypes.string_at(tensor.data_ptr(), size))
        offset += size
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(data))
