"""A stage without trainable parameters, such as an activation or a frozen layer: it trains, but neither with gradient_clipping,
nor with bf16, nor with ZeRO-1."""

import torch
from ranks import conclude, data, engine_of, fails, line, run

OPTIONS = {
    "gradient_clipping": {"gradient_clipping": 1.0},
    "bf16": {"bf16": {"enabled": True}},
    "ZeRO-1": {"zero_optimization": {"stage": 1, "reduce_bucket_size": 1000}, "zero_allow_untested_optimizer": True},
}


def body(layers, config):
    engine = engine_of(layers(), config=config)
    engine.train_batch(data(torch.ones(1, 1, dtype=torch.bfloat16 if "bf16" in config else torch.float32)))


def bare():
    return [line(), torch.nn.ReLU()]


run(2, lambda _: body(bare, {}))  # the controls
found = []
for name, config in OPTIONS.items():
    run(2, lambda _, c=config: body(lambda: [line(), line()], c))
    if why := fails(run, 2, lambda _, c=config: body(bare, c), expected="Error: "):
        found.append(f"{name} ({why})")
conclude(found, f"a stage without parameters fails with {', '.join(found)}", "a stage may have no parameters")
