"""The loss of a micro-batch is looked up by its number in a list that is filled in the order of execution. If the last
stage executes micro-batch 1 before 0, the backward starts from the wrong loss; outputs are joined in that order too."""

import tempfile

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

ORDERS = {False: "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", True: "0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n"}


def program(pipe, bug):
    pass
