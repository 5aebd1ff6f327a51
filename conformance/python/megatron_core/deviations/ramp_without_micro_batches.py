"""decrease_batch_size_if_needed and a ramp that begins with fewer samples than replicas: steps have no micro-batch, which a
constant batch size refuses. Since they take no samples, the ramp never leaves that size."""

from ranks import conclude, control, fails, run
from megatron.core import num_microbatches_calculator as calculator


def body(ramp, size=8):
    calculator.init_num_microbatches_calculator(0, ramp, size, 1, data_parallel_size=4, decrease_batch_size_if_needed=True)
    counts, consumed = [], 0
    for _ in range(3):
        calculator.update_num_microbatches(consumed)
        counts.append(calculator.get_num_microbatches())
        consumed += calculator.get_current_running_global_batch_size()
    return counts


control(run(1, body, [4, 4, 8]) == [[1, 1, 2]])
control(fails(run, 1, body, None, 2, expected="at least 1"))
(there,) = run(1, body, [2, 2, 8])
conclude(min(there) < 1, f"a ramp from 2 samples on 4 replicas has steps of {there} micro-batches",
         "a ramp has micro-batches in each step")  # fmt: skip
