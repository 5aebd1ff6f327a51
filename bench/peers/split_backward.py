"""Python's side of `plumbline bench peers backward`: a stage's backward by PyTorch, whole and in halves.

usage: split_backward.py --threads N --seconds S --out TIMES.json MODEL...
       split_backward.py --threads N --gradients full|split --out GRADIENTS.safetensors MODEL...

bench/peers/backward_round.h describes the measurement, bench/micro/backward_models.h what a MODEL is; both sides run
the same operators on the same numbers. Needs only torch.
exit: 0 done, 3 no torch with torch.distributed.pipelining here.
"""

import argparse
import ctypes
import gc
import json
import struct
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch.distributed.pipelining._backward import stage_backward, stage_backward_input, stage_backward_weight
except ImportError as error:
    sys.stdout.write(f'{sys.executable} cannot import torch.distributed.pipelining ({error})')
    sys.exit(3)

HEAD_WIDTH = 64
SMALL, LARGE = 13, 8  # exponents: within 1/16, within 2
FEWEST_PAIRS = 5


def fill(sizes, stream, exponent, middle):
    """The same bits as fill() of backward_models.cc."""
    numel = torch.Size(sizes).numel()
    i = torch.arange(numel, dtype=torch.int64)
    v = (i * i % 1021 + 2 * ((7919 * i + stream) % 509)) % 1021 - 510
    return (middle + v.double() * 2.0**-exponent).float().reshape(sizes)


class Stage:
    def __init__(self, text):
        kind, numbers = text.split(':')
        self.text = text
        self.transformer = kind == 'transformer'
        self.rows, self.length, self.width, layers = map(int, numbers.split(','))
        sizes = (self.rows, self.length, self.width) if self.transformer else (self.rows * self.length, self.width)
        self.x = fill(sizes, 0, LARGE, 0).requires_grad_()
        self.root_grad = fill(sizes, 1, LARGE, 0)
        self.parameters = {}
        for i in range(layers):
            layer = f'layers.{i}'
            if not self.transformer:
                self.add_linear(layer, self.width, self.width)
                continue
            self.add_norm(layer + '.norm1')
            self.add_linear(layer + '.qkv', self.width, 3 * self.width)
            self.add_linear(layer + '.proj', self.width, self.width)
            self.add_norm(layer + '.norm2')
            self.add_linear(layer + '.up', self.width, 4 * self.width)
            self.add_linear(layer + '.down', 4 * self.width, self.width)
        self.weights = list(self.parameters.values())
        self.input_grad = None

    def add_parameter(self, name, sizes, exponent, middle):
        value = fill(sizes, 2 + len(self.parameters), exponent, middle)
        self.parameters[name] = torch.nn.Parameter(value)

    def add_linear(self, name, fan_in, out):
        self.add_parameter(name + '.weight', (out, fan_in), LARGE + (fan_in.bit_length() - 1) // 2, 0)
        self.add_parameter(name + '.bias', (out,), SMALL, 0)

    def add_norm(self, name):
        self.add_parameter(name + '.weight', (self.width,), SMALL, 1)
        self.add_parameter(name + '.bias', (self.width,), SMALL, 0)

    def linear(self, x, i):
        return F.linear(x, self.weights[i], self.weights[i + 1])

    def norm(self, x, i):
        return F.layer_norm(x, (self.width,), self.weights[i], self.weights[i + 1])

    def block(self, x, i):
        heads = (self.rows, self.length, self.width // HEAD_WIDTH, HEAD_WIDTH)
        q, k, v = (part.view(heads).transpose(1, 2) for part in self.linear(self.norm(x, i), i + 2).chunk(3, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = x + self.linear(mixed.transpose(1, 2).reshape(x.shape), i + 4)
        return h + self.linear(F.gelu(self.linear(self.norm(h, i + 6), i + 8)), i + 10)

    def forward(self):
        for weight in self.weights:
            weight.grad = None
        self.x.grad = None
        self.input_grad = None
        h = self.x
        for i in range(0, len(self.weights), 12 if self.transformer else 2):
            if not self.transformer and i > 0:
                h = F.gelu(h)
            h = self.block(h, i) if self.transformer else self.linear(h, i)
        return h

    def full(self):
        """Seconds; the forward before it is not timed, releasing the output is."""
        output = self.forward()
        begin = time.perf_counter()
        (self.input_grad,) = stage_backward((output,), (self.root_grad,), (self.x,))
        del output
        return time.perf_counter() - begin

    def halves(self):
        """Seconds of the input backward and of the weight backward."""
        output = self.forward()
        begin = time.perf_counter()
        (self.input_grad,), groups = stage_backward_input([output], [self.root_grad], [self.x], iter(self.weights))
        del output
        middle = time.perf_counter()
        stage_backward_weight(iter(self.weights), groups)
        del groups
        return middle - begin, time.perf_counter() - middle


def measure(stage, seconds):
    times = {'full': [], 'input': [], 'weight': []}

    def add_full():
        times['full'].append(stage.full())

    def add_halves():
        first, second = stage.halves()
        times['input'].append(first)
        times['weight'].append(second)

    stage.full()
    stage.halves()
    # Live objects are exempt from collection; garbage of each pair is collected between pairs, outside the timed parts.
    gc.collect()
    gc.freeze()
    gc.disable()
    end = time.perf_counter() + seconds
    while len(times['full']) < FEWEST_PAIRS or time.perf_counter() < end:
        order = (add_full, add_halves) if len(times['full']) % 2 == 0 else (add_halves, add_full)
        for add in order:
            add()
        gc.collect()
    gc.enable()
    gc.unfreeze()
    return times


def write_gradients(path, stages):
    """A safetensors file; the keys are those of reference/result_key.h."""
    tensors = {}
    for stage in stages:
        tensors[f'0/backward/0/0/{stage.text}.x'] = stage.input_grad
        for name, weight in stage.parameters.items():
            tensors[f'0/grad/-/-/{stage.text}.{name}'] = weight.grad
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


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1])
    parser.add_argument('--threads', type=int, required=True)
    parser.add_argument('--seconds', type=float, default=1.0)
    parser.add_argument('--gradients', choices=('full', 'split'))
    parser.add_argument('--out', required=True)
    parser.add_argument('models', nargs='+')
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.gradients:
        stages = [Stage(text) for text in options.models]
        for stage in stages:
            stage.full() if options.gradients == 'full' else stage.halves()
        write_gradients(options.out, stages)
        return
    measured = [measure(Stage(text), options.seconds) for text in options.models]
    with open(options.out, 'w') as file:
        json.dump({'torch': torch.__version__, 'models': measured}, file)


if __name__ == '__main__':
    main()
