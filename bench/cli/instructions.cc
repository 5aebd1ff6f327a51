// plumbline bench instructions: instructions of the interpreter over those of the module, for one training step. Unlike
// times, they are free of noise.
#include <ATen/Parallel.h>

#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/micro/instruction_counter.h"
#include "bench/micro/transformer_step.h"

namespace plumbline::bench {
namespace {

struct InstructionsOptions {
  std::string loops;
  int count = 100;
  bool forward_only = false;
};

void loop(TransformerStep& step, Side side, const InstructionsOptions& options) {
  for (int i = 0; i < options.count; ++i) {
    if (options.forward_only)
      step.forward(side);
    else
      step.forward_backward(side);
  }
}

int count(const InstructionsOptions& options) {
  at::set_num_threads(1);
  TransformerStep step;
  if (!options.loops.empty()) {
    loop(step, options.loops == "module" ? Side::Module : Side::Interpreter, options);
    return 0;
  }
  const InstructionCounter counter;
  if (!counter.unavailable().empty()) {
    std::fprintf(stderr,
                 "plumbline-bench: instructions cannot be counted here (%s); scripts/bench_instructions counts them "
                 "with valgrind\n",
                 counter.unavailable().c_str());
    return 3;
  }
  double instructions[2];
  for (const Side side : {Side::Module, Side::Interpreter}) {
    loop(step, side, options);
    const int64_t before = counter.read();
    loop(step, side, options);
    instructions[side == Side::Interpreter] = static_cast<double>(counter.read() - before) / options.count;
  }
  std::printf("%s: module %.0f, interpreter %.0f instructions, ratio %.4f\n",
              options.forward_only ? "forward" : "forward+backward", instructions[0], instructions[1],
              instructions[1] / instructions[0]);
  return 0;
}

}  // namespace

void add_instructions(CLI::App& app, cli::Command& chosen) {
  auto options = std::make_shared<InstructionsOptions>();
  CLI::App* command = app.add_subcommand("instructions",
                                         "Instructions of one forward+backward of a 4-layer transformer of width 32: "
                                         "module, interpreter, and their ratio.\n"
                                         "Reads the processor's counter. If it is unavailable (exit code 3), "
                                         "scripts/bench_instructions counts with valgrind:\n"
                                         "it runs the --loops form below with two counts and takes the difference.");
  command->add_option("--loops", options->loops, "Only run this side, module or interpreter, without counting")
      ->check(CLI::IsMember({"module", "interpreter"}));
  command->add_option("--count", options->count, "Number of steps")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--forward", options->forward_only, "Forward alone, without gradients");
  command->callback([options, &chosen] { chosen = [options] { return count(*options); }; });
}

}  // namespace plumbline::bench
