"""The losses of a case as a user of Megatron-core writes them: what the loss function divides and weighs, and what it leaves
to the schedule."""

import torch


class Losses:
    """Megatron-core divides each loss by the number of micro-batches, or all gradients by the number of tokens, which are the
    rows, or the targets that count; or nothing."""

    def __init__(self, case):
        self._case = case
        self.scale = (case.json["optimizer"] or {}).get("loss_scale", 1)
        divides = case.json["gradients"]["divide_by"] != 1
        weights = {self._weight(s, m) for s in self._train_steps() for m in range(case.microbatches)}
        self.by_tokens = divides and weights != {1} and "class_weights" not in case.json["loss"]
        # The undivided loss: then what the schedule would divide by tokens may be left undivided too.
        self.per_token = self.by_tokens or not divides

    def _train_steps(self):
        return [s for s, step in enumerate(self._case.steps) if step["kind"] == "train"]

    def _weight(self, step, m):
        return self._case.loss_weight(step, m) / self.scale

    def scaled(self, loss):
        """config.grad_scale_func"""
        return loss * self.scale

    def last(self, step, m, recorder, outputs):
        """The user's loss_func: the loss of the last stage, in the forms that the schedule knows."""
        loss = self._case.loss(outputs, self._target(step, m), step)
        report = {"loss": loss.detach().clone()}  # the schedule divides the loss in place
        recorder.backward_begins(self._case.stages - 1, m, loss)
        loss = self.root(loss, step, m)
        if self.per_token:
            return loss, self._tokens(step, m), report
        return loss, report

    def own(self, loss, step, m):
        """A loss of an early stage: as a result, and as what MoEAuxLossAutoScaler takes."""
        result = self._case.divided(loss, step)
        return result, self.root(result, step, m)

    def root(self, loss, step, m):
        """The loss in the sum over micro-batches that the schedule divides."""
        if self._case.steps[step]["kind"] != "train":
            return loss
        factor = self._tokens(step, m) if self.by_tokens else self._weight(step, m)
        return loss if factor == 1 else loss * factor

    def undivided(self, step):
        """What makes a gradient between stages that of the loss of its micro-batch, undivided as the contract has it: the
        schedule divides each loss before its backward, and divides by tokens after all of them."""
        microbatches = self._case.microbatches
        if self.by_tokens:
            return microbatches / sum(int(self._tokens(step, m)) for m in range(microbatches))
        return 1 if self.per_token else microbatches

    def _target(self, step, m):
        return self._case.target(step, m)

    def _tokens(self, step, m):
        """The rows of a micro-batch, or how many of its targets count."""
        target = self._target(step, m)
        if self._case.json["loss"]["kind"] == "cross-entropy":
            ignored = self._case.json["loss"]["ignored_target"]
            return torch.tensor(target.numel()) if ignored is None else (target != ignored).sum()
        (entry,) = self._case.json["inputs"][:1]
        return torch.tensor(self._case.inputs(step, m)[0].shape[entry["chunk"]["dim"]])
