"""The parameters and buffers of ranks."""

import jax.numpy as jnp


class Copy:
    """A stage on a rank, with its own parameters and buffers; replicas, and some schedules, have several of a stage."""

    def __init__(self, case, rank, stage):
        self.rank, self.stage = rank, stage
        self.group = [self]  # the copies among which the parameters are divided: those of all replicas, if the case asks
        self.initial = {name: jnp.asarray(x) for name, x in case.parameters(stage).items()}
        self.shapes = {name: x.shape for name, x in self.initial.items()}
        self.buffers = {name: jnp.asarray(x) for name, x in case.buffers(stage).items()}
        self.kept = {}  # by parameter: its part of the elements
        self.sums = {}  # gradients of this step: {parameter: array}

    def join(self, group):
        self.group = group
        for name, x in self.initial.items():
            self.keep(name, x)
        del self.initial

    def keep(self, name, x):
        """Of a whole parameter."""
        elements, number = x.reshape(-1), self.group.index(self)
        size = -(-elements.size // len(self.group))
        self.kept[name] = elements[number * size : (number + 1) * size]

    def whole(self, name):
        """Gathered from all that have a part."""
        parts = [copy.kept[name] for copy in self.group]
        return (parts[0] if len(parts) == 1 else jnp.concatenate(parts)).reshape(self.shapes[name])

    def parameters(self):
        return {name: self.whole(name) for name in self.shapes}


def copies_of(case, rows):
    """{(rank, stage): Copy}, by ascending stage and then rank; `rows` as in schedule.csv, [rank][position][Action]."""
    places = sorted({(action.stage, rank) for rank, row in enumerate(rows) for group in row for action in group})
    copies = {(rank, stage): Copy(case, rank, stage) for stage, rank in places}
    for (rank, stage), copy in copies.items():
        same = [copies[r, s] for r, s in copies if s == stage and r % case.pipeline_ranks == rank % case.pipeline_ranks]
        copy.join(same if case.shards_parameters else [copy])
    return copies
