#include "conformance/run/doctor.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <sys/resource.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <ostream>
#include <sstream>
#include <thread>

#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/judge.h"
#include "conformance/judge/judge_files.h"
#include "conformance/judge/rank_files.h"
#include "conformance/judge/verdict/verdict.h"
#include "conformance/protocol/command/command_backend.h"
#include "conformance/protocol/command/job_failure.h"
#include "conformance/protocol/process/process.h"
#include "conformance/protocol/process/scratch_folder.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/protocol/schedule/schedule_source.h"
#include "conformance/recording/judge_recording.h"
#include "conformance/run/export_job.h"
#include "conformance/run/steps.h"
#include "conformance/run/supervise.h"
#include "runtime/device/cuda.h"
#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/text/counted.h"
#include "runtime/text/join.h"
#include "runtime/text/near_names.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"
#include "runtime/transport/cuda/shared_library.h"
#include "runtime/transport/nccl/library.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

ProcessResult run_words(std::vector<std::string> words, const BackendSpec& spec = {}) {
  ProcessOptions options;
  options.argv = std::move(words);
  options.environment = rank_environment();
  for (const auto& [name, value] : spec.environment) options.environment[name] = value;
  options.directory = spec.folder.string();
  options.timeout = std::chrono::seconds(60);
  options.separate_errors = true;
  return run_process(options);
}

/// Throws Error with `advice` unless the program ended well.
std::string output_of(const std::vector<std::string>& words, const std::string& advice) {
  const ProcessResult result = run_words(words);
  if (!result.succeeded()) throw Error(describe(result) + "; " + advice);
  return result.output;
}

/// The path of a program, looked up as the system does.
fs::path find_program(const std::string& program, const fs::path& folder) {
  const auto runs = [](const fs::path& path) { return fs::is_regular_file(path) && access(path.c_str(), X_OK) == 0; };
  if (program.find('/') != std::string::npos) {
    const fs::path path = folder / program;
    if (!fs::exists(path))
      throw Error(path.string() + " does not exist; a path is taken from " + fs::absolute(folder).string());
    if (!runs(path))
      throw Error(path.string() + " is no program that may be started; chmod +x it, or put its interpreter before it");
    return path;
  }
  const char* search = std::getenv("PATH");
  std::istringstream folders(search == nullptr ? "" : search);
  for (std::string one; std::getline(folders, one, ':');)
    if (runs(fs::path(one) / program)) return fs::path(one) / program;
  throw Error("no program '" + program + "' in PATH; install it, or give its whole path");
}

size_t lines_in(const std::string& text) { return static_cast<size_t>(std::ranges::count(text, '\n')); }

std::string start_trivial_ranks(const BackendSpec& spec, int ranks) {
  const std::string found = find_program(spec.launcher.front(), spec.folder).string();
  // A launcher of Python programs cannot start anything else.
  const bool starts_programs = fs::path(found).filename() != "torchrun" ||
                               std::ranges::find(spec.launcher, "--no-python") != spec.launcher.end();
  if (!starts_programs) return found + " (starts Python programs: not tried by itself)";
  BackendSpec trivial = spec;
  trivial.argv = {"sh", "-c", "echo rank"};
  std::vector<std::string> words = words_for(trivial, TransportKind::Own, "run", ranks, "", "");
  words.pop_back();  // the verb
  const ProcessResult result = run_words(words, spec);
  if (!result.succeeded() || lines_in(result.output) != static_cast<size_t>(ranks))
    throw Error(found + " does not start " + std::to_string(ranks) + " ranks of `echo rank`: " + describe(result) +
                ", they printed " + std::to_string(lines_in(result.output)) + " lines; try: " + join(words, " "));
  return found + " starts " + std::to_string(ranks) + " ranks";
}

/// Which library there is, and how many devices.
std::string nccl_text(const transport::nccl::LibraryChoice& choice, bool needed) {
  using transport::cuda::SharedLibrary;
  // After LibTorch's part for CUDA, as a run with --device cuda loads it.
  const bool is_libtorchs = choice.library.find('/') == std::string::npos &&
                            SharedLibrary::find(choice.library, /*only_loaded=*/true).has_value();
  try {
    const transport::nccl::Library library = transport::nccl::load_library(choice);
    std::string text = library.name() + ", " + library.path;
    if (is_libtorchs) text += ", which LibTorch brings along (without --device cuda: the one that the linker finds)";
    if (!library.stub.empty()) return text + "; a stub: it proves order and lifetimes, no kernels";
    int devices = 0;
    const auto counted = library.get_device_count(&devices);
    text += "; CUDA runtime " + library.cuda_path + ", ";
    if (counted == transport::nccl::CudaError::Success) return text + std::to_string(devices) + " devices";
    return text + "no device: " + library.cuda_get_error_string(counted);
  } catch (const Error& error) {
    if (needed) throw;
    return std::string("none: ") + error.what();
  }
}

std::string room_in_temporary_folder() {
  if (const std::string lack = lack_of_room(); !lack.empty()) throw Error(lack);
  const TemporaryFolder writable;
  const TemporaryRoom room = temporary_room();
  return room.folder.string() + ", " + std::to_string(room.bytes / 1'000'000) + " MB free";
}

std::string open_files() {
  if (const std::string lack = lack_of_open_files(); !lack.empty()) throw Error(lack);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return "a process may open " + (files.rlim_cur == RLIM_INFINITY ? "any number" : std::to_string(files.rlim_cur));
}

/// The examination of a backend, step by step.
class BackendExamination {
 public:
  BackendExamination(std::string given, std::ostream& out) : given_(std::move(given)), steps_(out) {}

  int examine() {
    steps_.needed("file", [&] { return file(); });
    steps_.needed("program", [&] { return find_program(spec_.argv.front(), spec_.folder).string(); });
    steps_.needed("launcher", [&] {
      return spec_.launcher.empty() ? "none: the backend starts its own ranks" : start_trivial_ranks(spec_, ranks());
    });
    steps_.needed("describe", [&] { return describe_verb(); });
    if (backend_.level == CaseLevel::Own) return examine_own_model();
    steps_.needed("schedules", [&] { return schedules(); });
    steps_.needed("plan", [&] { return plan(); });
    steps_.needed("run", [&] { return run(folder_.path()); });
    steps_.needed("result files", [&] { return files(); });
    steps_.needed("keys", [&] { return keys(); });
    steps_.needed("first comparison", [&] { return comparison(); });
    return steps_.exit_code();
  }

 private:
  /// Its first custom model, on one rank and on several under its first schedule.
  int examine_own_model() {
    const JobCase one{backend_.models.front(), kOneRank}, several{one.id, backend_.schedules->front()};
    const fs::path baseline = recording_folder(folder_.path() / "one", one);
    steps_.needed("plan", [&] { return plan_own(one, 1) + "; " + plan_own(several, ranks()); });
    steps_.needed("run on one rank", [&] { return run_own(one, 1, "one"); });
    steps_.needed("recording", [&] {
      if (const auto wrong = why_no_baseline(baseline)) throw Error(*wrong);
      const Recording recording = read_recording(baseline);
      return std::to_string(recording.order.size()) + " names, steps: " + std::to_string(recording.steps());
    });
    steps_.needed("run on several", [&] { return run_own(several, ranks(), "several"); });
    steps_.needed("first comparison", [&] {
      return passed(several, judge_recording(baseline, recording_folder(folder_.path() / "several", several), ranks(),
                                             backend_.delivers));
    });
    return steps_.exit_code();
  }

  static std::string passed(const JobCase& item, const Finding& finding) {
    const std::string line = sentence(Verdict{{item.id, item.schedule}, {}, {}, {}, {}, finding});
    if (finding.status != Status::Pass) throw Error(line);
    return line;
  }

  std::string plan_own(const JobCase& item, int count) {
    job_.ranks = count;
    job_.cases = {item};
    const auto answer = CommandBackend(spec_).plan(job_, folder_.path()).front();
    const std::string what = item.id + " x " + item.schedule + " on " + counted(count, "rank");
    if (!answer) throw Error("no answer for " + what + "; every case of the job needs one");
    if (!answer->supported) throw Error(what + " is not supported: " + answer->why);
    return what + " is supported";
  }

  std::string run_own(const JobCase& item, int count, const char* out) {
    job_.ranks = count;
    job_.cases = {item};
    return run(folder_.path() / out);
  }

  int ranks() const {
    if (spec_.ranks.empty()) return 2;
    const auto several = std::ranges::find_if(spec_.ranks, [](int n) { return n > 1; });
    return several == spec_.ranks.end() ? spec_.ranks.front() : *several;
  }

  std::string file() {
    spec_ = read_backend(given_);
    std::vector<std::string> words;
    for (const std::string& word : spec_.argv) words.push_back(shell_word(word));
    return spec_.name + ": " + join(words, " ");
  }

  std::string describe_verb() {
    backend_ = CommandBackend(spec_).describe();
    std::vector<std::string> kinds;
    for (const reference::ResultKind kind : backend_.delivers) kinds.emplace_back(reference::kind_name(kind));
    return backend_.name + " " + backend_.version + "; " +
           (backend_.models.empty() ? "" : "models of its own: " + join(backend_.models) + "; ") + "delivers " +
           join(kinds) + "; " +
           (backend_.schedules ? std::to_string(backend_.schedules->size()) + " schedules" : "any schedule");
  }

  /// Cases run under plumbline's schedules, and under the one that some bring: no case would run under another one that
  /// a backend names.
  std::string schedules() {
    if (!backend_.schedules) return "any";
    std::vector<std::string> known = schedule::schedule_names();
    known.emplace_back(kOwnSchedule);
    for (const std::string& name : *backend_.schedules)
      if (std::ranges::find(known, name) == known.end() && !is_schedule_file(name))
        throw Error("no case comes under '" + one_line(name) + "', which describe names; near: " +
                    join(near_names(known, name)) + " (`plumbline schedule --list` has all)");
    return std::to_string(backend_.schedules->size()) + ", each known";
  }

  /// gpipe where the backend has it, else the first of its schedules under which the case can train on these ranks;
  /// nullopt where there is none. `own` and files are of other cases.
  std::optional<std::string> schedule_for(const reference::Case& c) const {
    std::vector<std::string> names = backend_.schedules.value_or(std::vector<std::string>());
    if (names.empty() || std::ranges::find(names, "gpipe") != names.end()) names = {"gpipe"};
    for (const std::string& name : names) {
      try {
        if (schedule::has_backward(case_schedule(c, {name, ""}, job_.ranks))) return name;
      } catch (const InputError&) {
        continue;
      }
    }
    return std::nullopt;
  }

  /// Chooses the first quick case that the backend supports.
  std::string plan() {
    job_.ranks = ranks();
    std::string why_none;
    for (const reference::Case& c : profile("smoke")) {
      const std::optional<std::string> schedule = schedule_for(c);
      if (!schedule) continue;
      JobCase item{c.id, *schedule};
      if (const std::string why = export_for_job(item, job_, 0, backend_, folder_.path()); why.empty())
        job_.cases.push_back(item);
      else
        why_none += "; " + c.id + ": " + why;
    }
    if (job_.cases.empty() && why_none.empty())
      throw Error("no quick case comes under " + join(backend_.schedules.value_or(schedule::schedule_names())) +
                  " on " + counted(job_.ranks, "rank") +
                  "; name another of plumbline's schedules, or go on with `plumbline run`");
    const auto answers = CommandBackend(spec_).plan(job_, folder_.path());
    for (size_t i = 0; i < answers.size(); ++i) {
      const JobCase item = job_.cases[i];
      if (!answers[i])
        throw Error("no answer for " + item.id + " x " + item.schedule + "; every case of the job needs one");
      if (answers[i]->supported) {
        job_.cases = {item};
        return item.id + " x " + item.schedule + " on " + std::to_string(job_.ranks) + " ranks is supported";
      }
      why_none += "; " + item.id + ": " + answers[i]->why;
    }
    throw Error("none of the quick cases is supported, so there is nothing to try" + why_none);
  }

  std::string run(const fs::path& out) {
    bool done = false;
    std::string failed;
    const JobResult result = CommandBackend(spec_).run(job_, out, [&](const JobEvent& event) {
      done = done || event.done;
      failed += event.failed;
    });
    const std::string hidden = clause_on_hidden_event(result);
    if (!result.succeeded) throw Error(reason_of(result) + hidden);
    if (!failed.empty()) throw Error(failed);
    if (!result.any_event)
      throw Error("it said nothing; rank 0 has to print `" + std::string(kEventPrefix) +
                  "case 0 begins` and `... done` to standard output, each a line, and to flush it" + hidden);
    if (!done) throw Error("`" + std::string(kEventPrefix) + "case 0 done` was not said" + hidden);
    return "case 0 began and was done";
  }

  std::string files() {
    files_ = result_files_of_ranks(folder_.path(), job_.cases.front(), job_.ranks);
    if (files_.empty())
      throw Error("none below --out; for rank 0 there should be " + result_path("", job_.cases.front(), 0).string() +
                  " (the job file's \"results\", the rank, \".safetensors\")");
    size_t tensors = 0;
    for (const fs::path& file : files_)
      tensors +=
          read_tensors(RegularFile(folder_.path(), file.lexically_relative(folder_.path())), kUsualResultBytes).size();
    return std::to_string(files_.size()) + ", " + std::to_string(tensors) + " tensors";
  }

  std::string keys() {
    const TensorMap results = merge_results(read_rank_files(folder_.path(), files_));
    return std::to_string(results.size()) + " can be read, the first is " +
           (results.empty() ? "none" : shortened(results.begin()->first));
  }

  std::string comparison() {
    const JobCase& item = job_.cases.front();
    Judge judge(job_.seed, c10::kCPU, backend_.device != BackendDescription().device);
    return passed(
        item, judge_files(judge, folder_.path(), item, {.ranks = job_.ranks, .foreign = true, .backend = &backend_}));
  }

  std::string given_;
  Steps steps_;
  const ScratchFolder folder_;
  BackendSpec spec_;
  BackendDescription backend_;
  Job job_{.seed = 1};
  std::vector<fs::path> files_;
};

}  // namespace

int examine_machine(const std::string& nccl, std::ostream& out) {
  const auto choice = transport::nccl::parse_library_choice(nccl);
  Steps steps(out);
  steps.on_its_own("temporary folder", [] { return room_in_temporary_folder(); });
  steps.on_its_own("open files", [] { return open_files(); });
  steps.on_its_own("mpirun", [] {
    return first_line(
        output_of({"mpirun", "--version"}, "install Open MPI or MPICH; without it there is --transport threads"));
  });
  steps.on_its_own("more ranks than cores", [] {
    const int ranks = static_cast<int>(std::thread::hardware_concurrency()) + 2;
    const std::string printed = output_of({"mpirun", "-n", std::to_string(ranks), "echo", "rank"},
                                          "mpirun must start more ranks than there are cores");
    if (lines_in(printed) != static_cast<size_t>(ranks))
      throw Error("mpirun started " + std::to_string(lines_in(printed)) + " of " + std::to_string(ranks) + " ranks");
    return std::to_string(ranks) + " ranks start";
  });
  steps.on_its_own("LibTorch", [] {
    if (at::ones({3}).sum().item<float>() != 3.0f)
      throw Error("three ones do not add up; install it anew (scripts/setup)");
    return std::string(TORCH_VERSION);
  });
  steps.on_its_own("CUDA", [] {
    try {
      device::require_cuda();
      return device::describe_cuda() + ", for --device cuda";
    } catch (const Error& error) {
      return std::string("none: ") + error.what();
    }
  });
  steps.on_its_own("NCCL", [&] { return nccl_text(choice, /*needed=*/!nccl.empty()); });
  steps.on_its_own("Python", [] {
    const std::string advice = "adapters to Python backends need Python 3.11 or newer as python3";
    const std::string version = first_line(output_of({"python3", "--version"}, advice));
    int minor = 0;
    if (std::sscanf(version.c_str(), "Python 3.%d", &minor) != 1 || minor < 11) throw Error(version + "; " + advice);
    return version;
  });
  return steps.exit_code();
}

int examine_backend(const std::string& given, std::ostream& out) { return BackendExamination(given, out).examine(); }

}  // namespace plumbline::conformance
