"""MultiModulePipelineCommunicator keeps the gradients that a module receives by the name of that module: of two modules that
take its output, the gradient of the second one replaces that of the first."""

import torch
from ranks import communicator_of, conclude, control, on_cpu, run_bare


def body(rank, takers):
    with on_cpu():
        modules = ["encoder", *takers]
        communicator = communicator_of(modules, {"encoder": takers, **{name: [] for name in takers}})
        if rank == 0:
            communicator.send_forward({"encoder": torch.ones(1, 2, 4)})
            (gradient,) = communicator.recv_backward().values()
            return gradient.flatten()[0].item()
        if rank < len(modules):
            communicator.recv_forward()
            communicator.send_backward({"encoder": torch.full((1, 2, 4), 10.0**rank)})
        return None


control(run_bare(3, body, ["text"])[0] == 10)
there = run_bare(3, body, ["text", "image"])[0]
conclude(there != 110, f"two modules send the gradients 10 and 100 of one output: what arrives is {there:g}",
         "the gradients of two modules are added")  # fmt: skip
