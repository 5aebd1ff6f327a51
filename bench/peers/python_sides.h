// The scripts that are Python's side of `plumbline bench peers`: the program carries them, so that it works wherever it
// is installed.
#pragma once

#include <string_view>

namespace plumbline::bench {

extern const std::string_view deepspeed_cpu_py, dualpipe_cpu_py, filled_model_py, megatron_cpu_py, minimum_cut_py,
    partition_times_py, pipeline_steps_py, pytorch_joint_graph_py, pytorch_partition_answers_py,
    pytorch_partition_files_py, split_backward_py, steps_deepspeed_py, steps_dualpipe_py, steps_megatron_py,
    steps_pytorch_py;

}  // namespace plumbline::bench
