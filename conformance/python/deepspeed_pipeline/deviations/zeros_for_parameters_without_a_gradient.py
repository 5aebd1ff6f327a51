"""A parameter on which the loss does not depend has no gradient (None) without DeepSpeed; its reduction makes one of zeros,
which an optimizer with momentum or weight decay applies."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = line(), line()

    def forward(self, x):
        return self.used(x)


def decaying(groups):
    return torch.optim.SGD(groups, lr=0.5, weight_decay=1.0)


def body(rank):
    layers = [Layer(), Layer()]
    engine_of(layers, optimizer=decaying).train_batch(data(torch.ones(1, 1)))
    return layers[rank].unused.weight.item()


alone = Layer()
optimizer = decaying(alone.parameters())
alone(torch.ones(1, 1)).mean().backward()
optimizer.step()
if alone.unused.weight.item() != 1:
    fail("torch alone changes an unused parameter")
found = run(2, body)
conclude(found != [1, 1], f"weight decay changes unused parameters of 1, which torch alone leaves, to {found}",
         "unused parameters remain as they are")  # fmt: skip
