"""A ramp of batch sizes over no samples, or from the final batch size: both pass the checks of
init_num_microbatches_calculator(), and divide by 0."""

from ranks import conclude, control, fails, run
from megatron.core.num_microbatches_calculator import get_num_microbatches, init_num_microbatches_calculator


def body(ramp):
    init_num_microbatches_calculator(0, ramp, global_batch_size=8, micro_batch_size=1, data_parallel_size=1)
    return get_num_microbatches()


control(run(1, body, None) == [8])
control(run(1, body, [4, 4, 100]) == [4])
failures = [fails(run, 1, body, ramp, expected="division by zero") for ramp in ([4, 4, 0], [8, 4, 100])]
conclude(any(failures), f"a ramp over no samples, and one from the final batch size: {' and '.join(filter(None, failures))}",
         "a ramp may have no samples, and begin with the final batch size")  # fmt: skip
