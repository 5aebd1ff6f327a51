// plumbline bench gaps: why the ranks of any engine were idle in a step, from the times that plumbline_times.py
// recorded.
#include <cstdio>
#include <memory>
#include <optional>

#include "bench/cli/commands.h"
#include "bench/cli/show_gaps.h"
#include "bench/gaps/step_times.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

struct GapsOptions {
  std::string folder;
  std::optional<size_t> step;
  GapFiles files;
};

int show(const GapsOptions& options) {
  const std::vector<schedule::Trace> steps = read_step_times(options.folder);
  const size_t chosen = options.step.value_or(median_step(steps));
  if (chosen >= steps.size())
    throw InputError("--step: the steps are 0 to " + std::to_string(steps.size() - 1) + ", not " +
                     std::to_string(chosen));
  const std::string step = "step " + std::to_string(chosen);
  const std::string name =
      step + " of 0 to " + std::to_string(steps.size() - 1) + (options.step ? "" : ", the one of median length");
  std::printf("%s: %s ms\n", name.c_str(), significant(length_of(steps[chosen]), 4).c_str());
  try {
    show_gaps(steps[chosen], name, options.files);
  } catch (const WriteError&) {
    throw;
  } catch (const InputError& error) {
    throw InputError(options.folder + ": " + step + ": " + error.what());
  }
  return 0;
}

}  // namespace

void add_gaps(CLI::App& app, cli::Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "gaps",
      "\"Where is my bubble?\" of any training script: why each rank was idle in a step, and the critical path\n"
      "  plumbline bench gaps times                 the step of median length\n"
      "  plumbline bench gaps times --step 0 --svg gaps.svg\n"
      "conformance/python/plumbline_times.py records the times; docs/benchmarks.md shows the lines to add. The causes "
      "are those of `plumbline bench throughput --gaps`.");
  const auto options = std::make_shared<GapsOptions>();
  command->add_option("folder", options->folder, "The folder of StepTimes(FOLDER)")->type_name("FOLDER")->required();
  command->add_option("--step", options->step, "Which step, from 0 (default: the one of median length)");
  command->add_option("--svg", options->files.svg, "Draw the gaps by their largest cause, the critical path framed")
      ->type_name("F.svg");
  command->add_option("--trace", options->files.trace, "The same for ui.perfetto.dev (Chrome trace events)")
      ->type_name("F.json");
  command->callback([options, &chosen] { chosen = [options] { return show(*options); }; });
}

}  // namespace plumbline::bench
