"""An evaluation until its data end, with StopIteration as documented: DeepSpeed does not put its own iterator back, so that
training goes on with the evaluation's."""

import deepspeed
import torch
from deepspeed.pipe import PipelineModule
from ranks import conclude, data, fail, line, run


def body(ends):
    """The loss of a step over DeepSpeed's own data of ones, after evaluations of threes; None without one."""
    module = PipelineModule([line(), line()], num_stages=1, loss_fn=lambda y, _: y.mean(), partition_method="uniform")
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "steps_per_print": None}
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    dataset = [(torch.ones(1), torch.zeros(1))] * 2
    engine = deepspeed.initialize(model=module, optimizer=optimizer, config=config, training_data=dataset,
                                  dist_init_required=False)[0]  # fmt: skip
    threes = data(*[torch.full((1, 1), 3.0)] * 2)
    try:
        for _ in range(3 if ends else 2):
            engine.eval_batch(threes)
    except StopIteration:
        pass
    try:
        return engine.train_batch().item()
    except StopIteration:
        return None


control = run(1, lambda _: body(False))[0]
if control != 1:
    fail(f"after two evaluations the loss of the training is {control}; expected 1")
found = run(1, lambda _: body(True))[0]
conclude(found != 1, "after an evaluation until StopIteration training has no data, for it reads those of the evaluation",
         "after an evaluation until StopIteration training reads its own data")  # fmt: skip
