#include "conformance/launch.h"

#include <charconv>

#include "conformance/process.h"
#include "runtime/error.h"

namespace plumbline {
namespace {

/// Splits output into lines as it comes and picks out the events.
class EventReader {
 public:
  explicit EventReader(const std::function<void(const LaunchEvent&)>& on_event) : on_event_(on_event) {}
  void read(std::string_view piece) {
    size_t begin = 0, end = line_.size();  // what is left of earlier pieces holds no end of line
    line_ += piece;
    while ((end = line_.find('\n', end)) != std::string::npos) {
      const std::string_view line = std::string_view(line_).substr(begin, end - begin);
      if (line.starts_with(kEventPrefix)) on_event_(parse_event(line.substr(kEventPrefix.size())));
      begin = ++end;
    }
    line_.erase(0, begin);
  }

 private:
  const std::function<void(const LaunchEvent&)>& on_event_;
  std::string line_;
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

}  // namespace

std::map<std::string, std::string> rank_environment() {
  return {
      {"OMP_NUM_THREADS", "1"},
      // root is usual in containers
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
      {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      // more ranks than cores: share them, and never spin
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"PRTE_MCA_hwloc_default_binding_policy", "none"},
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      // what mpirun would say about a rank that aborted comes after the rank's own reason; keep it short
      {"OMPI_MCA_orte_abort_print_stack", "0"},
  };
}

LaunchEvent parse_event(std::string_view line) {
  const std::string_view whole = line;
  LaunchEvent event;
  const auto accept = [&](std::string_view word) {
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
  };
  event.throughput = accept("throughput ");
  if (!event.throughput && !accept("case ")) throw Error("unknown event '" + std::string(whole) + "'");
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), event.index);
  line.remove_prefix(end - line.data());
  event.done = accept(" done");
  if (error != std::errc() || (!event.done && !accept(" begins")) || !line.empty())
    throw Error("unknown event '" + std::string(whole) + "'");
  return event;
}

LaunchResult Launcher::run(const Job& job, const std::filesystem::path& out, std::chrono::duration<double> silence,
                           const std::function<void(const LaunchEvent&)>& on_event) const {
  std::filesystem::create_directories(out);
  const std::filesystem::path job_file = out / "job.json";
  write_job(job_file, job);
  ProcessOptions process;
  if (mpi_) process.argv = {"mpirun", "-n", std::to_string(ranks_)};
  for (const std::string& word :
       {program_, std::string("backend"), std::string("run"), std::string("--job"), job_file.string(),
        std::string("--out"), out.string(), std::string("--transport"), std::string(mpi_ ? "mpi" : "threads")})
    process.argv.push_back(word);
  process.environment = rank_environment();
  process.silence_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(silence);
  EventReader events(on_event);
  process.on_output = [&](std::string_view piece) { events.read(piece); };
  const ProcessResult ended = run_process(process);
  LaunchResult result;
  result.succeeded = ended.succeeded();
  result.timed_out = ended.timed_out;
  result.ending = ended.could_not_start.empty() ? describe(ended) : ended.could_not_start;
  result.output = without_events(ended.output);
  return result;
}

}  // namespace plumbline
