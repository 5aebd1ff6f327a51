"""The backward of a loss that stays in an early stage, for engines that know the last stage's loss only."""

import torch


class LocalLoss(torch.autograd.Function):
    """apply(output, loss, weight) passes an output of a stage on, and begins the backward of the loss, with that gradient,
    when the output's begins: a stage of a pipeline has no other place for it. As MoEAuxLossAutoScaler of Megatron does."""

    @staticmethod
    def forward(ctx, output, loss, weight):
        ctx.save_for_backward(loss)
        ctx.weight = weight
        return output

    @staticmethod
    def backward(ctx, gradient):
        (loss,) = ctx.saved_tensors
        return gradient, torch.full_like(loss, ctx.weight), None
