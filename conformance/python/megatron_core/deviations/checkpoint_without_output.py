"""CheckpointWithoutOutput() takes its default, fp8=False, for an FP8 training, and asks Transformer Engine for its state, which
need not be installed: so do TransformerLayer and experts of which "layernorm" or "moe_act" is to be recomputed."""

from ranks import Model, conclude, control, fails, microbatches, random, run, without_gpu


def body(**words):
    without_gpu()
    model = Model()
    for layer in model.layers:
        if words and layer.post_process:

            def forward(x, layer=layer):
                checkpoint = random.CheckpointWithoutOutput(**words)
                squared = checkpoint.checkpoint(lambda received: received * layer.weight, layer.received).square()
                checkpoint.discard_output_and_register_recompute(squared)
                return squared

            layer.forward = forward
        elif layer.post_process:
            layer.after = lambda y: y.square()
    model.train(microbatches(2), lambda y: (y.sum(), {}))
    return [gradient for gradient, _ in model.gradients()]


control(run(2, body) == run(2, body, fp8=None) == [[80.0]] * 2)
why = fails(run, 2, body, fp8=False, expected="is not defined")
conclude(why, f"CheckpointWithoutOutput() without FP8: {why}", "CheckpointWithoutOutput() needs no FP8")
