// plumbline bench proof: how long the proof of a large step takes, and how much memory.
#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/cli/recording.h"
#include "bench/proof/llama_shape.h"
#include "conformance/corpus/case_schedule.h"
#include "conformance/proof/prove.h"
#include "runtime/clock.h"

namespace plumbline::bench {
namespace {

struct ProofOptions {
  LlamaShape shape;
  int ranks = 16, microbatches = 1024;
  std::string schedule = "1f1b";
  RecordingOptions recording;
};

double seconds_of(const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec; }

/// One training step: losses, gradients, and parameters after an update.
reference::Case training_step(const ProofOptions& options) {
  reference::Case c;
  c.id = c.model = "llama";
  c.rows = c.microbatches = options.microbatches;
  c.loss = {.kind = LossKind::CrossEntropy, .reduction = Reduction::Mean};
  c.steps = {StepKind::Train, StepKind::Read, StepKind::Optimizer};
  c.optimizer = {.learning_rate = 0.1};
  return c;
}

int measure(const ProofOptions& options) {
  at::set_num_threads(1);
  add_llama("llama", options.shape);
  const reference::Case c = training_step(options);
  proof::ProofOptions how;
  how.schedule = conformance::case_schedule(c, {options.schedule, {}}, options.ranks);
  how.timeout = std::chrono::minutes(10);
  how.on_shapes = true;
  Recording recording(options.recording);
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "proving; the default size takes two to five minutes\n");
  const auto begin = std::chrono::steady_clock::now();
  const proof::Proof proof = proof::prove(c, how);
  const double seconds = seconds_since(begin);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double mib = static_cast<double>(used.ru_maxrss) / 1024;
  const double processor = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  std::printf("%s: %.1f billion parameters, %lld layers, %s, %d ranks, %d micro-batches, %zu results\n",
              std::string(proof::outcome_name(proof.outcome)).c_str(),
              1e-9 * static_cast<double>(parameter_count(options.shape)), static_cast<long long>(options.shape.layers),
              options.schedule.c_str(), options.ranks, options.microbatches, proof.results.size());
  std::printf("%lld operators of the engine, %zu terms, %.1f s (%.1f s of processor time), %.0f MiB, %.0f terms/s\n",
              static_cast<long long>(proof.log.executed), proof.terms, seconds, processor, mib,
              static_cast<double>(proof.terms) / seconds);
  if (proof.outcome != proof::Outcome::Proven) {
    std::fprintf(stderr, "plumbline-bench: %s\n", proof.why.c_str());
    return proof.outcome == proof::Outcome::Stopped ? 3 : 1;
  }
  const std::string name = "proof/" + options.schedule + "/layers:" + std::to_string(options.shape.layers) +
                           "/ranks:" + std::to_string(options.ranks) +
                           "/microbatches:" + std::to_string(options.microbatches);
  recording.add(name, {.name = "time", .unit = "s", .samples = {seconds}});
  recording.add(name, {.name = "peak", .unit = "MiB", .samples = {mib}});
  recording.write();
  return 0;
}

}  // namespace

void add_proof(CLI::App& app, cli::Command& chosen) {
  auto options = std::make_shared<ProofOptions>();
  CLI::App* command = app.add_subcommand(
      "proof",
      "Prove a training step of a model of the shape of Llama 3 405B, as `plumbline prove` does, and measure time and\n"
      "memory. The engine runs on tensors of the true sizes without memory, so nothing is computed.");
  command->add_option("--layers", options->shape.layers, "Layers")->check(CLI::Range(2, 4096))->capture_default_str();
  command->add_option("--ranks", options->ranks, "Ranks, each a thread")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--microbatches", options->microbatches, "Micro-batches, each of one row")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--schedule", options->schedule, "The schedule")->capture_default_str();
  add_recording_options(*command, options->recording);
  command->callback([options, &chosen] { chosen = [options] { return measure(*options); }; });
}

}  // namespace plumbline::bench
