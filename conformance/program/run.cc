#include "conformance/program/run.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <cstdio>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>

#include "conformance/backend/rank_threads.h"
#include "conformance/judge/compare.h"
#include "conformance/program/step.h"
#include "conformance/protocol/command/command_backend.h"
#include "conformance/protocol/process/process.h"
#include "conformance/run/hosts/launcher.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/transport/collectives.h"
#if PLUMBLINE_HAS_MPI
#include "conformance/backend/rank_process.h"
#include "runtime/transport/mpi/mpi.h"
#endif

namespace plumbline::program {
namespace {

/// Checks the files that are used after the step, so that the step is not executed in vain.
void check_places(const ProgramOptions& options) {
  if (!options.expect.empty() && read_tensor_file(options.expect).empty())
    throw InputError("--expect: " + options.expect.string() + " holds no tensors, so any result would match");
  if (options.save_results.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.save_results, error);
  if (error || !std::filesystem::is_directory(options.save_results))
    throw InputError("--save-results: cannot create the folder " + options.save_results.string() +
                     (error ? ": " + error.message() : ""));
}

size_t bytes_of(const graph::Graph& graph, graph::AttributeKind kind) {
  size_t bytes = 0;
  for (const graph::Attribute& attribute : graph.attributes)
    if (attribute.kind == kind && attribute.tensor.defined()) bytes += attribute.tensor.nbytes();
  return bytes;
}

void tell_about(const ProgramStep& step, const ProgramOptions& options, std::ostream& out) {
  const capture::ExportedProgram& program = step.prepared.program;
  const split::Pipe& pipe = step.prepared.pipe;
  out << "program   " << options.program.string() << " (torch " << program.torch_version << "), "
      << program.graph.nodes.size() << " calls\n";
  for (int s = 0; s < pipe.num_stages(); ++s) {
    const graph::Graph& graph = pipe.stages[s].graph;
    out << "stage " << s << "   " << graph.nodes.size() << " calls, "
        << bytes_of(graph, graph::AttributeKind::Parameter) << " bytes of parameters";
    for (size_t i = 0; i < pipe.stages[s].inputs.size(); ++i)
      out << (i ? ", " : ", takes ") << pipe.boundaries[pipe.stages[s].inputs[i]].name;
    out << '\n';
  }
  if (pipe.num_stages() == 1) out << "          one stage; cut it by --split or --stages\n";
  out << "step      " << step.batch.microbatches << " micro-batches, " << step.schedule.name << ", inputs "
      << (options.inputs.empty() ? "varied from the archive's samples" : options.inputs.string()) << ", loss "
      << to_string(step.prepared.loss)
      << (options.inputs.empty() && !step.prepared.loss.target.empty() ? " (generated)" : "")
      << (step.prepared.has_backward ? "" : " (nothing to train: forward only)") << '\n';
  if (step.remat.on()) out << "remat     " << to_string(step.remat) << '\n';
  if (step.recompute.policy != engine::Recompute::Never)
    out << "recompute " << to_string(step.recompute.policy) << ", "
        << (step.recompute.blocks_in.empty() ? "each stage is one block"
                                             : "each module inside '" + step.recompute.blocks_in + "' is a block")
        << '\n';
}

/// The number of elements whose bits differ, and the largest difference and its position; the dtypes and shapes if
/// these differ.
std::string difference(const HostTensor& got, const HostTensor& expected) {
  if (got.dtype != expected.dtype || got.shape != expected.shape)
    return "is " + describe(got) + ", expected " + describe(expected);
  double largest = 0;
  int64_t place = -1, differing = 0;
  for (int64_t i = 0; i < element_count(got); ++i) {
    if (conformance::same_bits(got, expected, i)) continue;
    ++differing;
    const double a = element_as_double(got, i), b = element_as_double(expected, i);
    const double distance = a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::abs(a - b);
    if (place < 0 || distance > largest || (std::isnan(distance) && !std::isnan(largest)))
      largest = distance, place = i;
  }
  std::ostringstream text;
  text << differing << " of " << element_count(got) << " elements differ, ";
  if (largest == 0)  // signed zeros, NaNs, or integers that are the same double
    text << "in their bits only (element " << place << ": " << conformance::bits_of(got, place) << ", expected "
         << conformance::bits_of(expected, place) << ')';
  else
    text << "by " << largest << " at most (element " << place << ": " << std::setprecision(9)
         << element_as_double(got, place) << ", expected " << element_as_double(expected, place) << ')';
  return text.str();
}

/// "output.", "loss.", "grad.", "buffer."; empty for any other name.
std::string kind_of(const std::string& name) {
  for (const char* kind : {"output.", "loss.", "grad.", "buffer."})
    if (name.starts_with(kind)) return kind;
  return "";
}

/// Compares bit for bit; returns whether the results are exactly the expected ones.
bool compare_with(const std::filesystem::path& path, const TensorMap& results, std::ostream& out) {
  const TensorMap expected = read_tensor_file(path);
  size_t equal = 0, unexpected = 0;
  constexpr size_t kShown = 10;
  size_t shown = 0;
  // In the order in which a step computes them: a later difference is mostly a consequence.
  for (const char* kind : {"output.", "loss.", "", "grad.", "buffer."})
    for (const auto& [name, tensor] : expected) {
      if (kind_of(name) != kind) continue;
      const auto it = results.find(name);
      if (it != results.end() && it->second == tensor) {
        ++equal;
        continue;
      }
      if (++shown <= kShown)
        out << "differs   " << name << ' ' << (it == results.end() ? "is missing" : difference(it->second, tensor))
            << '\n';
    }
  // Buffers that did not change need not be in the file.
  for (const auto& [name, tensor] : results) {
    if (name.starts_with("buffer.") || expected.contains(name)) continue;
    ++unexpected;
    if (++shown <= kShown) out << "differs   " << name << " is not expected\n";
  }
  if (shown > kShown) out << "differs   " << shown - kShown << " more\n";
  out << "expected  " << equal << " of " << expected.size() << " tensors of " << path.string()
      << " are bitwise equal\n";
  const bool same = equal == expected.size() && unexpected == 0;
  if (!same)
    out << "hint      were they computed with these inputs, --loss and --seed, by the same LibTorch on the same kind "
           "of "
           "CPU, with one thread? --route chain and --shared transmit keep the order of every sum\n";
  return same;
}

int finish(const ProgramOptions& options, const TensorMap& results, std::ostream& out) {
  out << "losses   ";
  for (int m = 0; results.contains("loss." + std::to_string(m)); ++m)
    out << ' ' << element_as_double(results.at("loss." + std::to_string(m)), 0);
  out << '\n';
  if (!options.save_results.empty()) {
    const std::filesystem::path path = options.save_results / "results.safetensors";
    write_tensor_file(path, results);
    out << "saved     " << path.string() << " (" << results.size() << " tensors)\n";
  }
  return options.expect.empty() || compare_with(options.expect, results, out) ? 0 : 1;
}

/// The caller has checked the input, so that its errors are reported before any rank starts.
int run_under_launcher(const ProgramOptions& options, int ranks, const std::string& program,
                       const std::vector<std::string>& argv, std::ostream& out) {
  conformance::ProcessOptions process;
  process.argv = conformance::launcher_words(options.launcher, ranks);
  process.argv.push_back(program);
  process.argv.insert(process.argv.end(), argv.begin(), argv.end());
  process.environment = conformance::rank_environment();
  conformance::end_children_on_signals();
  process.silence_timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(transport::from_seconds(120 + 2 * options.timeout_seconds));
  process.on_output = [&](std::string_view piece, const auto&) { out << piece << std::flush; };
  const conformance::ProcessResult ended = conformance::run_process(process);
  if (!ended.could_not_start.empty()) throw Error(ended.could_not_start);
  if (ended.exit_code && !ended.timed_out) return *ended.exit_code;
  throw Error("the ranks " + describe(ended));
}

int run_on_threads(const ProgramOptions& options, const ProgramStep& step, std::ostream& out) {
  TensorMap results;
  conformance::run_thread_ranks_on(
      options.device, /*slow_copies=*/false, step.ranks, [&](transport::Transport& transport, c10::Device device) {
        at::set_num_threads(1);
        TensorMap mine = run_step_on_rank(transport, transport.rank() == 0 ? &step : nullptr, device);
        if (transport.rank() == 0) results = std::move(mine);
      });
  return finish(options, results, out);
}

#if PLUMBLINE_HAS_MPI
int run_as_rank(const ProgramOptions& options, std::ostream& out) {
  transport::MpiSession mpi;
  try {
    const std::unique_ptr<transport::Transport> transport = transport::make_mpi_transport(mpi);
    const auto agree = [&](int code) {
      return transport::agree_on(*transport, code,
                                 transport::Deadline::patient(transport::from_seconds(options.timeout_seconds)));
    };
    std::optional<ProgramStep> step;
    int code = 0;
    if (mpi.rank() == 0) {
      try {
        check_places(options);
        step = make_step(options, mpi.size());
        tell_about(*step, options, out);
      } catch (const InputError& error) {
        std::fprintf(stderr, "plumbline: %s\n", error.what());
        code = 2;
      }
    }
    if (code = agree(code); code != 0) return code;
    const conformance::RankProcess rank(*transport, conformance::TransportKind::Mpi, "", options.device,
                                        transport::from_seconds(options.timeout_seconds));
    const TensorMap results = run_step_on_rank(rank.transport(), step ? &*step : nullptr, rank.device());
    return agree(step ? finish(options, results, out) : 0);
  } catch (const std::exception& error) {
    mpi.abort(graph::error_text(error));
  }
}
#endif

}  // namespace

int run_program(const ProgramOptions& options, const std::string& program, const std::vector<std::string>& argv,
                std::ostream& out) {
  at::set_num_threads(1);
#if PLUMBLINE_HAS_MPI
  if (transport::launched_under_mpi()) return run_as_rank(options, out);
#endif
  check_places(options);
  const ProgramStep step = make_step(options, options.ranks);
  if (options.mpi) return run_under_launcher(options, step.ranks, program, argv, out);
  tell_about(step, options, out);
  return run_on_threads(options, step, out);
}

}  // namespace plumbline::program
