"""Interleaved 1F1B on two ranks with batched messages (batch_p2p_comm, the default): both neighbours of a rank are the
other one, and of the activation and the gradient that it sends in one batch each is received as the other.
(NVIDIA/Megatron-LM issue 1450. Megatron-LM's command line refuses this; Megatron-core does not.)"""

from ranks import Model, conclude, control, microbatches, run


def body(batched):
    model = Model(chunks=2, batch_p2p_comm=batched, overlap_p2p_comm=not batched)
    losses = model.train(microbatches(4), lambda y: (y.sum(), {"loss": y.sum().item()}))
    return [report["loss"] for report in losses], [weight for weight, _ in model.gradients()]


def all_layers(answers):
    return [answers[layer % 2][1][layer // 2] for layer in range(4)]


right = run(2, body, batched=False)
control(right[1][0] == [16.0, 32.0, 48.0, 64.0] and all_layers(right) == [40.0] * 4)
there = run(2, body, batched=True)
conclude(there != right, f"the gradients of four layers are {all_layers(there)} for {all_layers(right)}",
         "two ranks with two chunks each give the right gradients")
