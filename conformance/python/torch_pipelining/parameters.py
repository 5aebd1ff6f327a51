"""The parameters of a rank's stages, their gradients, and the optimizer, of which PyTorch's pipelining knows nothing. Of
sharded stages all of this is about this rank's parts."""

import torch
import torch.distributed as dist
from plumbline_case.torch.optimizers import begin_states, clip_factor, norm_of, put_states, scale, share_of_norm, update

from replicas import own_rows, part, whole


def share(modules):
    """Makes a parameter of several stages of a rank one nn.Parameter, as it is in a user's model."""
    first = {}
    for module in modules:
        for name, parameter in list(module.named_parameters(remove_duplicate=False)):
            path, _, own = name.rpartition(".")
            setattr(module.get_submodule(path), own, first.setdefault(name, parameter))


class Parameters:
    """`roots`: [(stage, module)], the modules with the parameters. `alone`: copies on several ranks are not summed."""

    def __init__(self, case, roots, replicas, alone):
        self._case, self._roots, self._replicas, self._alone = case, roots, replicas, alone
        self._states = begin_states(case, [key[:2] for key in self.all()])  # of the optimizer
        for stage, name, parameter in self.all():
            state = self._states[stage, name]
            state |= {entry: own_rows(x, parameter) for entry, x in state.items() if entry != "step"}

    def all(self):
        """[(stage, canonical name, parameter)] of this rank; one of several stages appears under the first."""
        found = {}
        for stage, root in self._roots:
            for name, parameter in root.named_parameters():
                found.setdefault(id(parameter), (stage, name, parameter))
        return list(found.values())

    def gradients(self):
        """{name: gradient} as the optimizer sees them. PyTorch leaves the sum over the ranks' copies of a shared parameter
        to its user: they are added in ascending order of stages. Every rank that has a copy gets the sum."""
        own = [(stage, name, part(p.grad)) for stage, name, p in self.all() if p.grad is not None]
        shared = {p["name"] for p in self._case.program["parameters"] if len(p["stages"]) > 1}
        if self._alone or not shared:
            return {name: gradient for _, name, gradient in own}
        of_ranks = [None] * dist.get_world_size(self._replicas.pipeline)
        dist.all_gather_object(of_ranks, [copy for copy in own if copy[1] in shared], group=self._replicas.pipeline)
        sums = {}
        for _, name, gradient in sorted((copy for part in of_ranks for copy in part), key=lambda copy: copy[:2]):
            sums[name] = gradient if name not in sums else sums[name] + gradient
        names = {name for _, name, _ in self.all()}
        return {name: g for _, name, g in own if name not in shared} | {name: g for name, g in sums.items() if name in names}

    def whole_gradients(self):
        """gradients(), of sharded stages too."""
        parameters = {name: p for _, name, p in self.all()}
        return {name: whole(gradient, parameters[name]) for name, gradient in self.gradients().items()}

    def update(self, record_norm):
        """An optimizer step: all that concerns several stages is this user's work."""
        options, gradients = self._case.json["optimizer"], self.gradients()
        if options.get("skip_nonfinite") and not self._finite(gradients.values()):
            return
        if "loss_scale" in options:
            self._change(gradients, lambda gradient: gradient.div_(options["loss_scale"]))
        if "clip" in options:
            norm = self._norm(gradients, options["clip"]["norm"])
            record_norm(torch.tensor(norm, dtype=torch.float64))
            if (factor := clip_factor(norm, options["clip"])) is not None:
                self._change(gradients, lambda gradient: scale(gradient, factor))
        for stage, name, parameter in self.all():
            if name in gradients:
                with torch.no_grad():
                    update([part(parameter)], gradients[name], self._states[stage, name], options)

    def put_states(self, put):
        parameters = {(stage, name): p for stage, name, p in self.all()}
        put_states(put, {
            key: {entry: x if entry == "step" else whole(x, parameters[key]) for entry, x in state.items()}
            for key, state in self._states.items()
        })  # fmt: skip

    def _change(self, gradients, change):
        """Changes in place what the optimizer sees and what later steps add to: the same tensors, but for shared parameters."""
        own = [part(p.grad) for _, _, p in self.all() if p.grad is not None]
        for gradient in {id(g): g for g in [*gradients.values(), *own]}.values():
            change(gradient)

    def _norm(self, gradients, kind):
        """The norm over all ranks: an all-reduce of each parameter's share, which the rank of its first stage gives."""
        names = sorted(p["name"] for p in self._case.program["parameters"])
        own = {stage for stage, _ in self._roots}
        first = {p["name"]: min(p["stages"]) for p in self._case.program["parameters"]}
        shares = torch.zeros(len(names), dtype=torch.float64)
        for i, name in enumerate(names):
            if first[name] in own and name in gradients:
                shares[i] = share_of_norm(gradients[name], kind)
        shares = self._replicas.summed(shares, torch.sum if kind == 2 else torch.amax)
        return norm_of(dict(zip(names, shares.tolist(), strict=True)), kind)

    def _finite(self, gradients):
        """Whether those of all ranks are."""
        nonfinite = torch.tensor(sum(not gradient.isfinite().all() for gradient in gradients))
        return int(self._replicas.summed(nonfinite)) == 0
