"""Python's side of `plumbline bench peers backward`: a stage's backward by PyTorch, whole and in halves.

usage: split_backward.py --threads N --seconds S --out TIMES.json MODEL...
       split_backward.py --threads N --gradients full|split --out GRADIENTS.safetensors MODEL...

bench/peers/backward_round.h describes the measurement, filled_model.py what a MODEL is. Needs only torch.
exit: 0 done, 3 no torch with torch.distributed.pipelining here.
"""

import argparse
import gc
import json
import sys
import time

try:
    import torch
    from torch.distributed.pipelining._backward import stage_backward, stage_backward_input, stage_backward_weight
except ImportError as error:
    sys.stdout.write(f'{sys.executable} cannot import torch.distributed.pipelining ({error})')
    sys.exit(3)

from filled_model import LARGE, Layers, Shape, fill, write_tensors  # noqa: E402

FEWEST_PAIRS = 5


class Stage:
    def __init__(self, text):
        shape = Shape(text)
        self.text = text
        self.x = fill(shape.sizes(), 0, LARGE, 0).requires_grad_()
        self.root_grad = fill(shape.sizes(), 1, LARGE, 0)
        self.module = Layers(shape, 0, shape.layers)
        self.weights = list(self.module.parameters())
        self.input_grad = None

    def forward(self):
        for weight in self.weights:
            weight.grad = None
        self.x.grad = None
        self.input_grad = None
        return self.module(self.x)

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
    """The keys are those of reference/result_key.h."""
    tensors = {}
    for stage in stages:
        tensors[f'0/backward/0/0/{stage.text}.x'] = stage.input_grad
        for name, weight in stage.module.named_parameters():
            tensors[f'0/grad/-/-/{stage.text}.{name}'] = weight.grad
    write_tensors(path, tensors)


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
