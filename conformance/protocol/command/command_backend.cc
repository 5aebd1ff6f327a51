#include "conformance/protocol/command/command_backend.h"

#include <optional>
#include <set>

#include "conformance/protocol/command/backend_log.h"
#include "conformance/protocol/command/job_failure.h"
#include "conformance/protocol/process/process.h"
#include "conformance/protocol/report_folder.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"
#include "runtime/text/number.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"

namespace plumbline::conformance {
namespace {

/// The most bytes of an answer to describe or plan.
constexpr size_t kMostAnswer = size_t{64} << 20;

constexpr const char* kTwoProcesses = "; only one process may print events: do two act as rank 0?";

/// Splits output into lines as it arrives: events, and other text. A line longer than kLongestEvent is text.
class EventReader {
 public:
  EventReader(const OnEvent& on_event, BackendLog& log) : on_event_(on_event), log_(log) {}
  ~EventReader() { log_.add(line_); }
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  void read(std::string_view piece) {
    size_t begin = 0, end = line_.size();  // the rest of earlier pieces has no end of line
    line_ += piece;
    while ((end = line_.find('\n', end)) != std::string::npos) {
      const std::string_view line = std::string_view(line_).substr(begin, end - begin);
      begin = ++end;
      if (!in_long_line_ && line.starts_with(kEventPrefix)) {
        on_event_(parse_event(line.substr(kEventPrefix.size())));
      } else {
        if (hidden_.empty() && hides_event(line)) hidden_ = shortened(one_line(line));
        log_.add(line);
        log_.add("\n");
      }
      in_long_line_ = false;
    }
    line_.erase(0, begin);
    if (line_.size() <= (line_.starts_with(kEventPrefix) ? kLongestEvent : kLongest)) return;
    log_.add(line_);
    line_.clear();
    in_long_line_ = true;
  }

  /// The first line with an event behind other words; empty without one.
  const std::string& hidden() const { return hidden_; }

 private:
  /// Such as "[1,0]<stdout>:@plumbline case 0 begins".
  static bool hides_event(std::string_view line) {
    const size_t at = line.find(kEventPrefix);
    if (at == std::string_view::npos) return false;
    line.remove_prefix(at + kEventPrefix.size());
    line = line.substr(0, line.find_last_not_of(" \r") + 1);
    try {
      parse_event(line);
      return true;
    } catch (const BadEvent&) {
      return false;
    }
  }

  static constexpr size_t kLongest = 4096, kLongestEvent = size_t{1} << 20;
  const OnEvent& on_event_;
  BackendLog& log_;
  std::string line_, hidden_;
  bool in_long_line_ = false;
};

/// The events that one run of a backend has printed.
class EventsSoFar {
 public:
  /// Throws RepeatedEvent for the begin or the end of a case that came before, and for a begin after the end.
  void add(const JobEvent& event) {
    if (event.throughput) return;
    const bool is_new = (event.done ? ended_ : begun_).insert(event.index).second;
    if (is_new && (event.done || !ended_.contains(event.index))) return;
    const std::string case_name = "case " + std::to_string(event.index);
    throw RepeatedEvent("`" + (event.done ? "the end of " + case_name : case_name + " begins") + "` came " +
                        (is_new ? "after its end" : "a second time") + kTwoProcesses);
  }

 private:
  std::set<size_t> begun_, ended_;
};

/// The deadline of the backend's current activity.
class ActivityDeadline {
 public:
  explicit ActivityDeadline(const BackendSpec& spec) : spec_(spec) { expect(spec_.start, "no event"); }
  void saw(const JobEvent& event) {
    if (!event.done && event.throughput)
      due_ = {};
    else if (event.done)
      expect(spec_.start, "no other case begun and no end");
    else
      expect(spec_.one_case, "no end of the case");
  }
  const ProcessOptions::Due& due() const { return due_; }

 private:
  void expect(std::chrono::milliseconds time, const std::string& what) {
    due_ = {};
    if (time.count() > 0) due_ = {std::chrono::steady_clock::now() + time, what + " within " + seconds_text(time)};
  }
  const BackendSpec& spec_;
  ProcessOptions::Due due_;
};

std::string without_events(const std::string& output) {
  std::string kept;
  for (size_t begin = 0; begin < output.size();) {
    size_t end = output.find('\n', begin);
    end = end == std::string::npos ? output.size() : end + 1;
    const std::string_view line = std::string_view(output).substr(begin, end - begin);
    if (!line.starts_with(kEventPrefix)) kept += line;
    begin = end;
  }
  return kept;
}

ProcessOptions options_for(const BackendSpec& spec, TransportKind transport, const std::string& verb, int ranks,
                           const std::string& job, const std::string& out) {
  ProcessOptions process;
  process.argv = words_for(spec, transport, verb, ranks, job, out);
  process.environment = rank_environment();
  for (const auto& [name, value] : spec.environment) process.environment[name] = value;
  process.directory = spec.folder.string();
  process.silence_timeout = spec.silence;
  process.separate_errors = true;
  return process;
}

std::filesystem::path written_job(const Job& job, const std::filesystem::path& out) {
  std::filesystem::create_directories(out);
  std::filesystem::path file = job_path(std::filesystem::absolute(out));
  write_job(file, job);
  return file;
}

JobResult result_of(const ProcessResult& ended) {
  JobResult result;
  result.succeeded = ended.succeeded();
  result.timed_out = ended.timed_out;
  result.ending = ended.could_not_start.empty() ? describe(ended) : ended.could_not_start;
  result.output = without_events(ended.output);
  result.errors = ended.errors;
  return result;
}

}  // namespace

std::map<std::string, std::string> rank_environment() {
  return {
      {"OMP_NUM_THREADS", "1"},
      // containers usually run as root
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
      {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      // more ranks than cores: share the cores, and never spin
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"PRTE_MCA_hwloc_default_binding_policy", "none"},
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      // mpirun's text about an aborted rank follows the rank's reason; keep it short
      {"OMPI_MCA_orte_abort_print_stack", "0"},
  };
}

std::string to_string(const JobEvent& event) {
  return (event.throughput ? "throughput " : "case ") + std::to_string(event.index) +
         (!event.failed.empty() ? " failed: " + event.failed
          : event.done          ? " done"
                                : " begins");
}

JobEvent parse_event(std::string_view line) {
  const std::string_view whole = line;
  JobEvent event;
  const auto accept = [&](std::string_view word) {
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
  };
  event.throughput = accept("throughput ");
  const auto unknown = [&] {
    const std::string quoted = "'" + shortened(one_line(whole)) + "'";  // with no NUL, which would end it
    if (whole.find(kEventPrefix) != whole.npos)
      throw RepeatedEvent("two events on one line, " + quoted + kTwoProcesses);
    throw BadEvent("unknown event " + quoted);
  };
  if (!event.throughput && !accept("case ")) unknown();
  const auto index = take_number<size_t>(line);
  if (!index) unknown();
  event.index = *index;
  event.done = accept(" done");
  if (!event.throughput && accept(" failed: ")) {
    event.done = !line.empty();
    event.failed = shortened(one_line(line));
    line = {};
  }
  if ((!event.done && !accept(" begins")) || !line.empty()) unknown();
  return event;
}

std::string CommandBackend::answer(const std::string& verb, const std::string& job) const {
  ProcessOptions process = options_for(spec_, transport_, verb, 1, job, "");
  process.timeout = spec_.start;
  process.output_limit = kMostAnswer;
  process.on_output = [&, printed = size_t{0}](std::string_view piece, const auto&) mutable {
    printed += piece.size();
    if (printed > kMostAnswer)
      throw BackendError(spec_.name + ": " + verb + ": more than " + std::to_string(kMostAnswer >> 20) +
                         " MiB on standard output");
  };
  const ProcessResult ended = run_process(process);
  if (!job.empty() && !ended.errors.empty())
    append_file(backend_log(std::filesystem::path(job).parent_path()), ended.errors);
  if (!ended.succeeded()) throw BackendError(spec_.name + ": " + verb + ": " + reason_of(result_of(ended)));
  if (const std::string stray = stray_words(ended.output, verb == "plan" ? '[' : '{'); !stray.empty())
    throw BackendError(spec_.name + ": " + verb + ": " + stray);
  return ended.output;
}

BackendDescription CommandBackend::describe() const {
  const std::string text = answer("describe", "");
  try {
    return parse_description(text, spec_.name + ": describe");
  } catch (const InputError& error) {
    throw BackendError(shortened(one_line(error.what())));
  }
}

std::vector<std::optional<PlanAnswer>> CommandBackend::plan(const Job& job, const std::filesystem::path& out) const {
  const std::string text = answer("plan", written_job(job, out).string());
  try {
    return parse_plan(text, job, spec_.name + ": plan");
  } catch (const InputError& error) {
    throw BackendError(shortened(one_line(error.what())));
  }
}

JobResult CommandBackend::run(const Job& job, const std::filesystem::path& out, const OnEvent& on_event) const {
  std::filesystem::path job_file;
  try {
    job_file = written_job(job, out);
  } catch (const std::exception& error) {  // an earlier run of the backend may have put anything in its place
    return {.ending = one_line(error.what())};
  }
  ProcessOptions process =
      options_for(spec_, transport_, "run", job.ranks, job_file.string(), job_file.parent_path().string());
  ActivityDeadline limits(spec_);
  process.due = [&] { return limits.due(); };
  BackendLog log(job, job_file.parent_path());
  EventsSoFar so_far;
  bool any_event = false, late = false;
  const std::function<void()>* hear_errors = nullptr;
  const auto take = [&](const JobEvent& event) {
    late = late || std::chrono::steady_clock::now() >= limits.due().at;
    if (late) return;  // it is being ended: later events are ignored
    const size_t count = event.throughput ? job.throughput.size() : job.cases.size();
    if (event.index >= count)
      throw BadEvent("an event about number " + std::to_string(event.index) + " of " + std::to_string(count));
    so_far.add(event);
    any_event = true;
    if (!event.failed.empty()) (*hear_errors)();  // its traceback has come before the event
    log.saw(event);
    on_event(event);
    limits.saw(event);  // starts the deadline now: the time in on_event is not the backend's
  };
  const OnEvent taking = take;
  EventReader events(taking, log);
  process.on_errors = [&](std::string_view piece) { log.add(piece); };
  process.on_output = [&](std::string_view piece, const std::function<void()>& hear) {
    hear_errors = &hear;
    events.read(piece);
  };
  JobResult result;
  try {
    const ProcessResult ended = run_process(process);
    result = result_of(ended);
    if (!result.succeeded && ended.could_not_start.empty() && (late || result.timed_out || !any_event))
      result.lack = lack_of_ranks();
    if (late && !result.timed_out) {  // it ended by itself before it could be ended
      result.succeeded = false;
      result.timed_out = true;
      result.ending = limits.due().reason;
    }
  } catch (const BadEvent& error) {
    result.ending = shortened(one_line(error.what()));
    result.repeated_event = dynamic_cast<const RepeatedEvent*>(&error) != nullptr;
  }
  result.any_event = any_event;
  result.hidden_event = events.hidden();
  return result;
}

}  // namespace plumbline::conformance
