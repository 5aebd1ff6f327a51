"""The losses of a case as a user of Megatron-core writes them: what the loss function divides and weighs, and what it leaves
to the schedule."""

import torch


class Losses:
    """Megatron-core divides each loss by the number of micro-batches, or all gradients by the number of tokens, which are the
    rows, or the targets that count; or nothing."""

    def __init__(self, case, whole):
        """`case` is the part of one replica of the `whole` case: by tokens all replicas divide by the same number."""
        self._case, self._whole = case, whole
        self.scale = (case.json["optimizer"] or {}).get("loss_scale", 1)
        divides = case.json["gradients"]["divide_by"] != 1
        weights = {whole.loss_weight(s, m) / self.scale for s in self._train_steps() for m in range(whole.microbatches)}
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

    def last(self, step, m, recorder, parameters, outputs):
        """The user's loss_func: the loss of the last stage, in the forms that the schedule knows. `parameters`: its own."""
        loss = self._case.loss(outputs, self._case.target(step, m), step, parameters)
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
        if self.by_tokens:
            microbatches = range(self._whole.microbatches)
            return len(microbatches) / sum(int(_tokens(self._whole, step, m)) for m in microbatches)
        return 1 if self.per_token else self._case.microbatches

    def _tokens(self, step, m):
        return _tokens(self._case, step, m)


def _tokens(case, step, m):
    """The rows of a micro-batch, or how many of its targets count."""
    if case.json["loss"]["kind"] == "cross-entropy":
        ignored, targets = case.json["loss"]["ignored_target"], case.flat_targets(case.target(step, m))
        return sum(torch.tensor(of.numel()) if ignored is None else (of != ignored).sum() for of in targets)
    (entry,) = case.json["inputs"][:1]
    return torch.tensor(case.inputs(step, m)[0].shape[entry["chunk"]["dim"]])
