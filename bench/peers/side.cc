#include "bench/peers/side.h"

#include <array>
#include <cstdlib>
#include <utility>

#include "bench/peers/python_sides.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"
#include "runtime/text/one_line.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {

std::vector<std::string> python_side(const std::string& python, const std::string& script,
                                     const std::filesystem::path& folder) {
  for (const auto& [name, text] : std::to_array<std::pair<const char*, std::string_view>>(
           {{"deepspeed_cpu.py", deepspeed_cpu_py},
            {"dualpipe_cpu.py", dualpipe_cpu_py},
            {"filled_model.py", filled_model_py},
            {"megatron_cpu.py", megatron_cpu_py},
            {"minimum_cut.py", minimum_cut_py},
            {"partition_times.py", partition_times_py},
            {"pipeline_steps.py", pipeline_steps_py},
            {"pytorch_joint_graph.py", pytorch_joint_graph_py},
            {"pytorch_partition_answers.py", pytorch_partition_answers_py},
            {"pytorch_partition_files.py", pytorch_partition_files_py},
            {"split_backward.py", split_backward_py},
            {"steps_deepspeed.py", steps_deepspeed_py},
            {"steps_dualpipe.py", steps_dualpipe_py},
            {"steps_megatron.py", steps_megatron_py},
            {"steps_pytorch.py", steps_pytorch_py}}))
    write_file(folder / name, std::string(text));
  return {python, (folder / script).string()};
}

void run_side(const std::string& name, const conformance::ProcessOptions& process, const std::string& option,
              const std::string& needs, const std::filesystem::path& result) {
  std::filesystem::remove(result);  // a file left by another process is not this one's
  const conformance::ProcessResult ended = conformance::run_process(process);
  if (!ended.could_not_start.empty()) throw InputError(option + ended.could_not_start);
  if (ended.exit_code == kLacksModule) throw InputError(option + one_line(ended.output) + "; " + needs);
  if (!ended.succeeded()) throw Error(name + " " + describe(ended) + "\n" + ended.output);
  if (!std::filesystem::exists(result))
    throw InputError(option + name + " (" + process.argv.front() + ") succeeded, but wrote no results; " + needs);
}

std::string load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? fixed(load, 2) : "unknown";
}

}  // namespace plumbline::bench
