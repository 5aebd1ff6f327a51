#include "conformance/hold.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/backend/built_models.h"
#include "conformance/backend/engine_subject.h"
#include "conformance/backend/flight/rank_flight.h"
#include "conformance/judge/judge.h"
#include "conformance/judge/rank_files.h"
#include "conformance/plan/plan.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "conformance/report/report.h"
#include "conformance/report/text.h"
#include "reference/host_results.h"
#include "reference/loss.h"
#include "reference/models/zoo.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/transport/collectives.h"
#include "runtime/transport/threads/threads.h"
#if PLUMBLINE_HAS_MPI
#include "runtime/transport/mpi/mpi.h"
#endif

namespace plumbline::conformance {
namespace {

/// `make` with the seed of the parameters. Ranks that are threads make their models at the same time; each must draw
/// the same parameters. Throws InputError if a module comes again: several ranks would capture it at once, and oracles
/// would begin with what the ranks have trained.
std::function<OwnModel(uint64_t seed)> make_seeded(const std::function<OwnModel()>& make) {
  // What is gone cannot come again. Used in turns only.
  const auto made = std::make_shared<std::vector<std::weak_ptr<torch::nn::Module>>>();
  return [make, made](uint64_t seed) {
    const graph::RandomTurn seeded(seed);
    OwnModel own = make();
    std::erase_if(*made, [](const auto& module) { return module.expired(); });
    if (std::ranges::any_of(*made, [&](const auto& module) { return module.lock() == own.module; }))
      throw InputError("hold: `make` returned one module twice; it must construct a model of its own each time");
    made->push_back(own.module);
    return own;
  };
}

/// That of all parameters and inputs that are real numbers: the judge bounds the roundings of one type. A model of
/// bfloat16 may keep some of its parts in float32, whose roundings are smaller.
reference::Dtype dtype_of(const torch::nn::Module& module, const std::vector<at::Tensor>& inputs) {
  std::vector<std::pair<std::string, at::Tensor>> numbers;
  for (const auto& item : module.named_parameters())
    numbers.emplace_back("parameter '" + item.key() + "'", item.value());
  for (size_t i = 0; i < inputs.size(); ++i) numbers.emplace_back("input " + std::to_string(i), inputs[i]);
  std::erase_if(numbers, [](const auto& one) { return !one.second.defined() || !one.second.is_floating_point(); });
  if (numbers.empty()) return reference::Dtype::F32;
  const auto is_mixed = [](const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16;
  };
  auto [first, number] = numbers.front();
  for (const auto& [name, other] : numbers) {
    if (other.scalar_type() == number.scalar_type()) continue;
    if (!is_mixed(number) || !is_mixed(other))
      throw InputError("hold: " + first + " is " + graph::describe(number) + ", but " + name + " is " +
                       graph::describe(other) + "; models of one type, or of f32 and bf16, are judged");
    if (other.scalar_type() == at::kBFloat16) std::tie(first, number) = std::tie(name, other);
  }
  using enum reference::Dtype;
  for (const reference::Dtype dtype : {F32, BF16, F16, F64})
    if (reference::scalar_type(dtype) == number.scalar_type()) return dtype;
  throw InputError("hold: " + first + " is " + graph::describe(number) + "; f32, bf16, f16 and f64 are judged");
}

/// The case needs no gradients of the batch, and ranks that are threads would all write those of the caller's tensors.
models::Batch detached_batch(const HoldOptions& options) {
  const auto detached = [](const at::Tensor& tensor) { return tensor.defined() ? tensor.detach() : tensor; };
  models::Batch batch;
  std::ranges::transform(options.inputs, std::back_inserter(batch.inputs), detached);
  batch.targets = options.target.map(detached);
  return batch;
}

reference::Case register_case(const std::function<OwnModel()>& make, const HoldOptions& options) {
  if (options.inputs.empty()) throw InputError("hold: no inputs given");
  std::vector<microbatch::ChunkSpec> chunks = options.chunks;
  chunks.resize(options.inputs.size());
  reference::Case c;
  c.id = "own-model";
  c.title = "a model of your own";
  c.truth = reference::Truth::SameOrder;
  c.model = c.id;
  c.microbatches = options.microbatches;
  c.loss = options.loss;
  c.steps = options.steps;
  c.optimizer = options.optimizer;
  if (!options.target.defined() &&
      (c.loss.kind == reference::LossKind::Mse || c.loss.kind == reference::LossKind::CrossEntropy))
    throw InputError("hold: this loss needs a target, and none is given");
  const std::function<OwnModel(uint64_t seed)> make_own = make_seeded(make);
  const OwnModel first = make_own(options.seed);
  make_own(options.seed);  // must be another
  c.dtype = dtype_of(*first.module, options.inputs);
  models::add_model(
      c.model,
      [make_own, options, chunks](reference::Dtype, uint64_t seed) {
        const OwnModel own = make_own(seed);
        models::Model model;
        model.module = own.module;
        model.forward = own.forward;
        for (size_t i = 0; i < options.inputs.size(); ++i) model.input_names.push_back("input" + std::to_string(i));
        model.input_chunks = chunks;
        model.split_points = options.split;
        model.compared_outputs = std::max<int>(1, static_cast<int>(options.target.size()));
        return model;
      },
      [batch = detached_batch(options)](reference::Dtype, int, uint64_t, int) { return batch; });
  return c;
}

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

/// Runs the case over whatever ranks there are; all results arrive where there is a judge (elsewhere: none).
using RunRanks = std::function<std::optional<TensorMap>(const reference::Case&, const EngineCaseOptions&)>;

std::optional<TensorMap> run_on_threads(const reference::Case& c, const EngineCaseOptions& options) {
  std::vector<RankResults> ranks(options.schedule.ranks.size());
  transport::run_thread_ranks(static_cast<int>(ranks.size()), [&](transport::Transport& transport) {
    at::set_num_threads(1);
    with_flight_log(transport, options.timeout, [&](transport::Transport& logged) {
      ranks[transport.rank()] = {rank_text(transport.rank()), reference::to_host(run_case_on_rank(c, logged, options))};
    });
  });
  return merge_results(ranks);
}

std::optional<TensorMap> run_on_transport(transport::Transport& transport, const reference::Case& c,
                                          const EngineCaseOptions& options) {
  const std::string mine = encode_tensors(reference::to_host(run_case_on_rank(c, transport, options)));
  const auto parts = transport::gather_bytes(transport, 0, std::as_bytes(std::span(mine)),
                                             transport::Deadline::after(options.timeout));
  if (transport.rank() != 0) return std::nullopt;
  std::vector<RankResults> ranks;
  for (const auto& part : parts) {
    const std::string from = rank_text(static_cast<int>(ranks.size()));
    ranks.push_back({from, decode_tensors({reinterpret_cast<const char*>(part.data()), part.size()}, from)});
  }
  return merge_results(ranks);
}

int hold_over(int ranks, const reference::Case& c, const HoldOptions& options, const RunRanks& run) {
  Judge judge(options.seed);
  const std::unique_ptr<ModelFacts> models = built_models(options.seed);
  RunReport report;
  const int stages = static_cast<int>(options.split.size()) + 1;
  int ran = 0;
  bool judged_here = false;
  for (const std::string& name : matching_schedules({options.schedules})) {
    schedule::Schedule schedule;
    try {
      schedule = schedule_over_stages({name, ""}, stages, ranks, c.microbatches);
      if (const std::string reason = why_unsupported(c, schedule, *models); !reason.empty()) throw InputError(reason);
    } catch (const InputError& error) {
      report.verdicts.push_back({{c.id, name}, c.title, {}, {}, {}, {c.truth, Status::Unsupported, error.what()}});
      continue;
    }
    const std::optional<TensorMap> results = run(c, {schedule, options.seed});
    ++ran;
    if (!results) continue;
    report.verdicts.push_back({{c.id, schedule.name}, c.title, {}, {}, {}, judge.judge(c, schedule, *results)});
    judged_here = true;
  }
  if (ran == 0) throw InputError("hold: nothing to run: " + report.verdicts.front().finding.reason);
  if (!judged_here) return 0;  // the judge sits on another rank
  std::printf("%s", (matrix_text(report.verdicts) + "\n" + summary_text(report.verdicts)).c_str());
  for (const Verdict& verdict : report.verdicts) std::printf("%s\n", sentence(verdict).c_str());
  return exit_code(report);
}

#if PLUMBLINE_HAS_MPI
int hold_over_mpi(const reference::Case& c, const HoldOptions& options) {
  transport::MpiSession mpi;
  // Outlives the handlers of exceptions, since its end may wait for the other ranks.
  std::unique_ptr<transport::Transport> transport;
  bool alike = true;  // so far every rank has done the same, and found the same
  try {
    const int stages = static_cast<int>(options.split.size()) + 1;
    if (stages % mpi.size() != 0)
      throw InputError("hold: " + std::to_string(options.split.size()) + " split points make " +
                       std::to_string(stages) + " stages, mpirun started " + std::to_string(mpi.size()) + " ranks");
    transport = transport::make_mpi_transport(mpi);
    const int code = hold_over(mpi.size(), c, options, [&](const reference::Case& one, const EngineCaseOptions& how) {
      alike = false;
      std::optional<TensorMap> results;
      // Rank 0 may still be judging the schedule before.
      with_flight_log(*transport, how.timeout,
                      [&](transport::Transport& logged) { results = run_on_transport(logged, one, how); });
      return results;
    });
    // Rank 0 may still be judging the last schedule; ~MpiSession is less patient.
    transport::barrier(*transport, transport::Deadline::patient(EngineCaseOptions().timeout));
    return code;
  } catch (const InputError& error) {
    // A rank that has run its stages, or judges, may be alone with what it finds: the others wait for it.
    if (!alike) mpi.abort(error.what());
    if (mpi.rank() == 0) std::fprintf(stderr, "plumbline: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    mpi.abort(graph::error_text(error));
  }
}
#endif

}  // namespace

int hold(const std::function<OwnModel()>& make, const HoldOptions& options) {
  at::set_num_threads(1);
  try {
    const reference::Case c = register_case(make, options);
#if PLUMBLINE_HAS_MPI
    if (transport::launched_under_mpi()) return hold_over_mpi(c, options);
#endif
    return hold_over(0, c, options, run_on_threads);
  } catch (const InputError& error) {
    std::fprintf(stderr, "plumbline: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plumbline: %s\n", graph::error_text(error).c_str());
    return 1;
  }
}

}  // namespace plumbline::conformance
