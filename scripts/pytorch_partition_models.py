"""The models whose joint graphs scripts/pytorch_partitions records, each with its purpose."""

import math

import torch
import torch.utils.checkpoint


class Block(torch.nn.Module):
    def __init__(self, width, heads, sdpa):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.norm2, self.up, self.down = torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.heads, self.sdpa = heads, sdpa

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        if self.sdpa:
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            y = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // self.heads), -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class Attention(torch.nn.Module):
    def __init__(self, blocks, sdpa, width=32, heads=4):
        super().__init__()
        self.blocks = torch.nn.Sequential(*(Block(width, heads, sdpa) for _ in range(blocks)))

    def forward(self, x):
        return self.blocks(x)


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.Tanh(), torch.nn.Linear(40, 10))

    def forward(self, x, target):
        return torch.nn.functional.cross_entropy(self.net(x), target)


class InPlace(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(16, 16)

    def forward(self, x):
        y = self.fc(x).mul_(2)
        y.select(0, 0).add_(1)
        y.narrow(1, 2, 4).copy_(x.narrow(1, 0, 4))
        return y.relu_().sum(1)


class TiedEmbedding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.fc = torch.nn.Embedding(30, 16), torch.nn.Linear(16, 16)

    def forward(self, ids):
        return torch.nn.functional.silu(self.fc(self.table(ids))) @ self.table.weight.t()


class ConvPool(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.bn = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 8, 3, groups=2), torch.nn.BatchNorm2d(8)
        self.fc = torch.nn.Linear(8 * 2 * 2, 5)

    def forward(self, x):
        y = torch.nn.functional.max_pool2d(torch.relu(self.a(x)), 2)
        return self.fc(torch.nn.functional.avg_pool2d(torch.sigmoid(self.bn(self.b(y))), 2).flatten(1))


class ManyOutputs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(12, 12)

    def forward(self, x, y):
        a, b, c = self.fc(x).split(4, 1)
        return a * b, torch.cat([b, c], 1).exp(), x, y + 1


class FarApart(torch.nn.Module):
    """A small value that is expanded before use: mode bytes saves an eighth of what min-cut saves."""

    def forward(self, x, w):
        y = (x @ w).expand(-1, 8)
        for i in range(40):
            y = y + i
        return y.cos()


class Chain(torch.nn.Module):
    def forward(self, x):
        for _ in range(110):
            x = (x * 1.01).sin()
        return x


class Dropouts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(32, 32),
                                       torch.nn.Dropout(0.5), torch.nn.LogSoftmax(-1))

    def forward(self, x):
        return self.net(x)


class CheckpointedDropout(torch.nn.Module):
    """A call that the user tags for recomputation draws random numbers: its generator state must be replayed."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def part(self, x):
        return self.b(torch.nn.functional.dropout(torch.nn.functional.gelu(self.a(x)), 0.25))

    def forward(self, x):
        x = torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=False)
        return torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=False).tanh()


class WrittenInput(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)
        self.register_buffer('seen', torch.zeros(8))

    def forward(self, x, history):
        y = self.fc(x)
        self.seen.add_(y.detach().sum(0))
        history.mul_(0.5).add_(y.detach())
        return (y * self.seen).sin() * history


class DynamicBlock(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(16, 2, False)

    def forward(self, x):
        y = self.block(x)
        return torch.cat([y, x], 1).view(-1, 16).cumsum(0) / y.shape[0]


def dynamic(tensor, *dimensions):
    for dimension in dimensions:
        torch._dynamo.mark_dynamic(tensor, dimension)
    return tensor


def random(*shape, grad=False):
    return torch.randn(*shape, requires_grad=grad)


MODELS = {
    'attn_two_blocks': ('two pre-norm blocks, softmax by hand, B2 T8 D32 H4', lambda: (Attention(2, False), (random(2, 8, 32, grad=True),))),
    'attn_eight_blocks': ('eight pre-norm blocks, softmax by hand, B4 T256 D128 H8', lambda: (Attention(8, False, 128, 8), (random(4, 256, 128, grad=True),))),
    'attn_sdpa': ('one pre-norm block with scaled_dot_product_attention', lambda: (Attention(1, True), (random(2, 8, 32),))),
    'cross_entropy': ('Linear-tanh-Linear and cross entropy', lambda: (Classifier(), (random(12, 20), torch.randint(10, (12,))))),
    'in_place': ('writes in place: mul_, select.add_, narrow.copy_, relu_', lambda: (InPlace(), (random(6, 16),))),
    'tied_embedding': ('embedding, silu, product with the same table', lambda: (TiedEmbedding(), (torch.randint(30, (4, 7)),))),
    'conv_pool': ('convolutions (one grouped), max and average pool, batch norm, sigmoid', lambda: (ConvPool(), (random(4, 3, 14, 14),))),
    'many_outputs': ('split, cat, an input passed through, an output without parameters', lambda: (ManyOutputs(), (random(6, 12, grad=True), random(6, 12)))),
    'far_apart': ('matmul to one column, expanded, forty additions, cos', lambda: (FarApart(), (random(64, 16, grad=True), random(16, 1, grad=True)))),
    'long_chain': ('110 times (times, sin): longer than a fusible chain may be', lambda: (Chain(), (random(8, 8, grad=True),))),
    'dropout_log_softmax': ('two dropouts, relu, log_softmax', lambda: (Dropouts(), (random(10, 16),))),
    'checkpoint_dropout': ('two checkpointed regions with a dropout each', lambda: (CheckpointedDropout(), (random(6, 16, grad=True),))),
    'written_input': ('writes a buffer and an input that need no gradient', lambda: (WrittenInput(), (random(5, 8), random(5, 8)))),
    'dynamic_block': ('a block with dynamic batch and length, cat, view, division by a size', lambda: (DynamicBlock(), (dynamic(random(3, 6, 16), 0, 1),))),
}
