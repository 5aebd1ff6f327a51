// plumbline bench proof: how long the proof of a large step takes, and how much memory.
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "bench/cli/commands.h"
#include "bench/cli/recording.h"
#include "bench/proof/deep_transformer.h"
#include "conformance/corpus/case_schedule.h"
#include "conformance/proof/prove.h"
#include "runtime/error.h"
#include "runtime/text/significant.h"

namespace plumbline::bench {
namespace {

struct ProofOptions {
  int layers = 126, ranks = 16, microbatches = 1024;
  std::string schedule = "1f1b";
  RecordingOptions recording;
};

double gib(double kib) { return kib / (1024.0 * 1024.0); }

int measure(const ProofOptions& options) {
  at::set_num_threads(1);
  reference::Case c;
  c.id = c.model = "deep-transformer";
  c.rows = c.microbatches = options.microbatches;
  c.loss = {.kind = LossKind::Sum, .reduction = Reduction::Mean};
  add_deep_transformer(c.model, options.layers);
  proof::ProofOptions how{.schedule = conformance::case_schedule(c, {options.schedule, {}}, options.ranks)};
  how.timeout = std::chrono::minutes(10);
  Recording recording(options.recording);
  const auto begin = std::chrono::steady_clock::now();
  const proof::Proof proof = proof::prove(c, how);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double memory = gib(static_cast<double>(used.ru_maxrss));
  std::printf("%s: %d layers, %d ranks, %d micro-batches, %s: %zu results, %zu terms, %s s, %s GiB\n",
              std::string(proof::outcome_name(proof.outcome)).c_str(), options.layers, options.ranks,
              options.microbatches, options.schedule.c_str(), proof.results.size(), proof.terms,
              significant(seconds, 3).c_str(), significant(memory, 3).c_str());
  if (proof.outcome != proof::Outcome::Proven) {
    std::fprintf(stderr, "plumbline-bench: %s\n", proof.why.c_str());
    return 1;
  }
  const std::string name = "proof/" + options.schedule + "/layers:" + std::to_string(options.layers) +
                           "/ranks:" + std::to_string(options.ranks) +
                           "/microbatches:" + std::to_string(options.microbatches);
  recording.add(name, {.name = "time", .unit = "s", .samples = {seconds}});
  recording.write();
  return 0;
}

}  // namespace

void add_proof(CLI::App& app, cli::Command& chosen) {
  auto options = std::make_shared<ProofOptions>();
  CLI::App* command = app.add_subcommand(
      "proof",
      "Prove the step of a deep transformer, as `plumbline prove` does, and measure time and memory.\n"
      "Its values are narrow: a proof depends on the operators and their order, not on the width.");
  command->add_option("--layers", options->layers, "Layers, each with attention and a perceptron")
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "Ranks, each a thread")->check(CLI::Range(1, 64))->capture_default_str();
  command->add_option("--microbatches", options->microbatches, "Micro-batches, each of one row")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--schedule", options->schedule, "The schedule")->capture_default_str();
  add_recording_options(*command, options->recording);
  command->callback([options, &chosen] { chosen = [options] { return measure(*options); }; });
}

}  // namespace plumbline::bench
