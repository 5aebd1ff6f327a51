"""The modules behind the archives in this folder, each of them one thing that a loader of .pt2 archives must get right.

Made by scripts/make_pt2 (see `make` beside this file). Parameters and inputs are small whole numbers, and everything
computed from them is exact in the types used, so the stored results are the same on every CPU and with any number of
threads. Micro-batches of the data-dependent ones take different paths.
"""

import torch
from torch import nn
from torch.distributed.pipelining import pipe_split

ROWS, WIDTH = 4, 4


def numbers(*shape, low=-2, high=2):
    return torch.randint(low, high + 1, shape).float()


def whole(module):
    """The module with whole numbers as parameters; the generator is seeded by scripts/make_pt2."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(numbers(*parameter.shape))
    return module


class Tied(nn.Module):
    """`first.weight` is `head.weight`; `scale` is a buffer that is not persistent, `unused` is in no computation."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.middle = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WIDTH, bias=False)
        self.head.weight = self.first.weight
        self.unused = nn.Parameter(torch.zeros(2))
        self.register_buffer('scale', torch.tensor([1.0, 2.0, -1.0, 1.0]), persistent=False)

    def forward(self, x):
        x = torch.relu(self.first(x)) * self.scale
        return self.head(torch.relu(self.middle(x)))


def tied():
    return whole(Tied()), (numbers(ROWS, WIDTH),), {}


class Markers(nn.Module):
    """Three stages by pipe_split(); the skip connection passes the middle one."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.third = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        skip = self.first(x)
        pipe_split()
        x = torch.relu(self.second(skip))
        pipe_split()
        return self.third(x + skip)


def markers():
    return whole(Markers()), (numbers(ROWS, WIDTH),), {}


class NoGrad(nn.Module):
    """A region under no_grad that holds a module and updates a buffer, with a region under enable_grad inside."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.teacher = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.register_buffer('total', torch.zeros(WIDTH))

    def forward(self, x):
        x = self.first(x)
        with torch.no_grad():
            taught = self.teacher(x)
            self.total.add_(taught.sum(0))
            with torch.enable_grad():
                x = torch.relu(x)
            # A region without a result would be saved, but PyTorch 2.15 cannot load what it saved.
            taught = taught * 2
        return self.second(x) + taught


def no_grad():
    return whole(NoGrad()), (numbers(ROWS, WIDTH),), {}


class Cond(nn.Module):
    """torch.cond with a parameter in its branches, and another with two results; the predicates depend on the data."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.first(x)
        y = torch.cond(x[0, 0] > 0, lambda v: self.inner(v) * 2, lambda v: -v, (y,))
        a, b = torch.cond(x[1, 1] > 0, lambda v: (v + 1, v * 2), lambda v: (v * 3, v - 1), (y,))
        return self.last(a + torch.relu(b))


def cond():
    return whole(Cond()), (numbers(ROWS, WIDTH),), {}


class InPlace(nn.Module):
    """Writes through views of what is read later, in-place operators on intermediates, and buffers that change."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.register_buffer('calls', torch.zeros((), dtype=torch.int64))
        self.register_buffer('latest', torch.zeros(ROWS, WIDTH), persistent=False)

    def forward(self, x):
        self.calls.add_(1)
        y = self.first(x)
        y[:, 1:3] = x[:, :2]
        y[0].fill_(3.0)
        y.select(1, 3).mul_(2.0)
        corner = y[2:, :2]
        corner.masked_fill_(corner > 1, -1.0)
        self.latest.copy_(y.detach())
        y = torch.zeros_like(y).add_(y).relu_()
        left, right = y.chunk(2, 1)
        return self.second(torch.cat([right, left], 1))


def in_place():
    return whole(InPlace()), (numbers(ROWS, WIDTH),), {}


class Nonzero(nn.Module):
    """How many rows go through `inner` depends on the data."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.first(x)
        rows = (x[:, 0] > 0).nonzero().squeeze(1)
        y = y.index_add(0, rows, self.inner(y[rows]))
        return self.last(y) + torch.masked_select(x, x > 0).sum()


def nonzero():
    return whole(Nonzero()), (numbers(ROWS, WIDTH),), {}


class Keywords(nn.Module):
    """Keyword inputs, nested ones among them, given in an order other than the signature's; outputs of many kinds."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, *, scale=1.0, left=None, pair=None, nothing=None, mask=None):
        y = self.first(x) * scale
        if nothing is not None:
            y = y + nothing
        y = y.masked_fill(mask, 0.0) + left - pair['b'] * pair['a']
        return {'result': self.second(y), 'others': (y, None, 7)}


def keywords():
    named = {
        'mask': numbers(ROWS, WIDTH) > 0,
        'pair': {'b': numbers(ROWS, WIDTH), 'a': torch.tensor(2.0)},
        'nothing': None,
        'left': numbers(ROWS, WIDTH),
        'scale': 2.0,
    }
    return whole(Keywords()), (numbers(ROWS, WIDTH),), named


class Autocast(nn.Module):
    """All of it under autocast to bfloat16, with a float32 region inside. All values stay below 2^8."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            x = torch.relu(self.first(x))
            with torch.autocast('cpu', enabled=False):
                # No value is on a bound: what the gradient is there, PyTorch has changed.
                x = torch.clamp(self.second(x.float()), -4.5, 4.5)
            return self.last(x)


def autocast():
    module = Autocast()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(numbers(*parameter.shape, low=-1, high=1))
    return module, (numbers(ROWS, WIDTH),), {}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return torch.relu(self.fc(x))


class Views(nn.Module):
    """Parameters and a stage's input behind views of one sum: autograd gives their gradients one memory."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.left = nn.Parameter(torch.zeros(ROWS, WIDTH))
        self.right = nn.Parameter(torch.zeros(ROWS, WIDTH))
        self.second = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = self.second(self.first(x))
        return torch.relu(x.reshape(-1) + self.left.reshape(-1) + self.right.reshape(-1)).reshape(ROWS, WIDTH)


def views():
    return whole(Views()), (numbers(ROWS, WIDTH),), {}


class Branches(nn.Module):
    """A cond of which one branch has a gradient and the other has none; the sample takes the one without."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.first(x)
        (g,) = torch.cond(x[0, 0] > 0, lambda v: (v * 2,), lambda v: (torch.zeros_like(v),), (y,))
        return self.second(g + 1)


def branches():
    x = numbers(ROWS, WIDTH)
    x[0, 0] = -1.0
    return whole(Branches()), (x,), {}


class BufferOut(nn.Module):
    """Outputs that are a buffer which changes, and a view of it."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.register_buffer('total', torch.zeros(WIDTH))

    def forward(self, x):
        self.total.add_(x.sum(0))
        y = self.first(x)
        return self.second(y), self.total, self.total[1:3]


def buffer_out():
    return whole(BufferOut()), (numbers(ROWS, WIDTH),), {}


class Average(nn.Module):
    """A buffer that every micro-batch changes before its forward needs it for backward."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.register_buffer('average', torch.ones(WIDTH))

    def forward(self, x):
        self.average.mul_(2.0).add_(x.detach().sum(0))
        y = self.first(x) * self.average
        return self.second(y) * self.average[0]


def average():
    return whole(Average()), (numbers(ROWS, WIDTH),), {}


class NumberFirst(nn.Module):
    """A constant among the outputs, before the loss."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.second(torch.relu(self.first(x)))
        return 3, y.sum(), y


def number_first():
    return whole(NumberFirst()), (numbers(ROWS, WIDTH),), {}


class Twice(nn.Module):
    """The module `shared` (and `shared.fc` in it) is called twice, with `between` in the middle."""

    def __init__(self):
        super().__init__()
        self.shared = Block()
        self.between = Block()
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.last(self.shared(self.between(self.shared(x))))


def twice():
    return whole(Twice()), (numbers(ROWS, WIDTH),), {}


class Embedding(nn.Module):
    """Integer inputs; the head is tied to the embedding, positions are a constant of the forward."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(8, WIDTH)
        self.positions = nn.Embedding(4, WIDTH)
        self.body = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 8, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, weights):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        x = torch.relu(self.body(x)) * weights.unsqueeze(-1)
        return self.head(x)


def embedding():
    return whole(Embedding()), (torch.randint(0, 8, (2, 4)), torch.randint(0, 3, (2, 4))), {}


class Dynamic(nn.Module):
    """The batch size is a symbol, and numbers computed from it are arguments."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        rows = x.shape[0]
        y = torch.relu(self.first(x)).reshape(rows * 2, WIDTH // 2)
        return self.second(y.reshape(rows, WIDTH)) + torch.arange(rows).unsqueeze(1)


def dynamic():
    sizes = {'x': {0: torch.export.Dim('rows', min=2, max=1024)}}
    return whole(Dynamic()), (numbers(ROWS, WIDTH),), {}, sizes


@torch.library.custom_op('plumbline_testdata::twofold', mutates_args=())
def twofold(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twofold.register_fake(torch.empty_like)
twofold.register_autograd(lambda context, gradient: gradient * 2)


class Custom(nn.Module):
    """An operator that only exists in Python: to be refused, with its name and the module it is called in."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())

    def forward(self, x):
        return self.second(twofold(self.first(x)))


def custom():
    return whole(Custom()), (numbers(ROWS, WIDTH),), {}
