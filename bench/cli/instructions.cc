// plumbline bench instructions: instructions of the interpreter over those of the module, for one training step. Unlike
// times, they are free of noise.
#include <ATen/Parallel.h>

#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/cli/recording.h"
#include "bench/micro/instruction_counter.h"
#include "bench/micro/transformer_step.h"

namespace plumbline::bench {
namespace {

struct InstructionsOptions {
  std::string loops;
  int count = 100;
  bool forward_only = false;
  std::vector<double> counted;
  RecordingOptions recording;
};

/// The part by which counts of the same program differ from run to run.
constexpr double kWobble = 0.002;

/// Prints and records the instructions of a step of the module and of the interpreter.
void report(double module, double interpreter, const InstructionsOptions& options) {
  const char* const what = options.forward_only ? "forward" : "forward+backward";
  std::printf("%s: module %.0f, interpreter %.0f instructions, ratio %.4f\n", what, module, interpreter,
              interpreter / module);
  Recording recording(options.recording);
  const auto add = [&](const char* name, const char* unit, double value) {
    recording.add("instructions/" + std::string(what),
                  {.name = name, .unit = unit, .kind = Kind::Counted, .tolerance = kWobble, .samples = {value}});
  };
  add("module", "instructions", module);
  add("interpreter", "instructions", interpreter);
  add("ratio", "1", interpreter / module);
  recording.write();
}

void loop(TransformerStep& step, Side side, const InstructionsOptions& options) {
  for (int i = 0; i < options.count; ++i) {
    if (options.forward_only)
      step.forward(side);
    else
      step.forward_backward(side);
  }
}

int count(const InstructionsOptions& options) {
  if (!options.counted.empty()) {
    report(options.counted[0], options.counted[1], options);
    return 0;
  }
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
  report(instructions[0], instructions[1], options);
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
  command
      ->add_option("--counted", options->counted,
                   "Print and record these counts, of module and interpreter, instead of counting")
      ->type_name("N N")
      ->expected(2)
      ->check(CLI::Range(1.0, 1e15));
  add_recording_options(*command, options->recording);
  command->callback([options, &chosen] { chosen = [options] { return count(*options); }; });
}

}  // namespace plumbline::bench
