"""ChainedOptimizer, of experts and other parameters, or of the first chunk and the others with
overlap_param_gather_with_optimizer_step: each optimizer has its own loss scale, which only its own overflow lowers. Losses are
scaled by the first one's; the other's gradients are divided by another number from then on."""

import math

import torch
from ranks import conclude, control, on_cpu, run
from megatron.core.optimizer.grad_scaler import DynamicGradScaler
from megatron.core.optimizer.optimizer import ChainedOptimizer, MixedPrecisionOptimizer
from megatron.core.optimizer.optimizer_config import OptimizerConfig


class Optimizer(MixedPrecisionOptimizer):
    """Of one parameter. Megatron-core's own ones take parameters of a GPU only."""

    is_stub_optimizer = False
    zero_grad = state_dict = load_state_dict = sharded_state_dict = None

    def __init__(self, config):
        self.parameter = torch.nn.Parameter(torch.zeros(1))
        scaler = DynamicGradScaler(8.0, min_scale=1.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=9, hysteresis=1)
        super().__init__(torch.optim.SGD([self.parameter], lr=1.0), config, scaler, None)

    def _copy_model_grads_to_main_grads(self):
        self.parameter.grad = self.parameter.main_grad.clone()

    def _collect_main_grad_data_for_unscaling(self):
        return [self.parameter.grad]


def body(*overflow):
    with on_cpu():
        config = OptimizerConfig(fp16=True)
        optimizers = [Optimizer(config), Optimizer(config)]
        chain = ChainedOptimizer(optimizers)
        for gradients in (overflow, (1.0, 1.0)):
            for optimizer, gradient in zip(optimizers, gradients, strict=True):
                optimizer.parameter.main_grad = gradient * chain.get_loss_scale()
            chain.prepare_grads()
        return [optimizer.parameter.grad.item() for optimizer in optimizers]


right = [1.0, 1.0]
control(run(1, body, 1.0, 1.0) == [right])
control(run(1, body, math.inf, math.inf) == [right])
(there,) = run(1, body, 1.0, math.inf)
conclude(there != right, f"after an overflow of the second optimizer the gradients 1 and 1 are {there[0]:g} and {there[1]:g}",
         "after an overflow of one optimizer both have the same loss scale")  # fmt: skip
