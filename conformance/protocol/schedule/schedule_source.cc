#include "conformance/protocol/schedule/schedule_source.h"

#include <filesystem>

#include "runtime/error.h"
#include "runtime/io/gzip.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/text/join.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

void require_as_asked(const schedule::Schedule& schedule, const schedule::ScheduleRequest& request,
                      const std::string& file) {
  const auto refuse = [&](const std::string& reason) { throw InputError("schedule file " + file + ": " + reason); };
  const auto require = [&](int asked, int found, const std::string& what) {
    if (asked != 0 && asked != found) {
      refuse("it has " + std::to_string(found) + " " + what + ", not " + std::to_string(asked) + " as requested");
    }
  };
  require(request.ranks, static_cast<int>(schedule.ranks.size()), "ranks");
  require(request.microbatches, schedule.microbatches, "micro-batches");
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()) && request.stages_per_rank != 0; ++rank) {
    require(request.stages_per_rank, static_cast<int>(schedule::stages_of_rank(schedule, rank).size()),
            "stages on rank " + std::to_string(rank));
  }
  const auto refuse_field = [&](bool given, const std::string& what) {
    if (given) refuse("a file determines its order, and takes no " + what);
  };
  refuse_field(request.group_size != 0, "group size");
  refuse_field(request.slices != 0, "slices");
  refuse_field(request.durations.has_value(), "durations");
  refuse_field(request.memory_limit != 0, "memory limit");
  refuse_field(request.weight_memory.has_value(), "share of memory kept for W");
}

}  // namespace

bool is_schedule_file(const std::string& name_or_file) { return name_or_file.ends_with(".csv"); }

schedule::Schedule parse_schedule_file(std::string_view text, const std::string& file,
                                       const schedule::ScheduleRequest& request,
                                       std::optional<schedule::Dialect> dialect) {
  schedule::Schedule schedule = schedule::parse_csv(text, file, dialect);
  require_as_asked(schedule, request, file);
  return schedule;
}

schedule::Schedule load_schedule(const std::string& name_or_file, const schedule::ScheduleRequest& request,
                                 std::optional<schedule::Dialect> dialect) {
  if (is_schedule_file(name_or_file))
    return parse_schedule_file(read_text(name_or_file), name_or_file, request, dialect);
  if (schedule::find_schedule_kind(name_or_file) == nullptr) {
    std::error_code ignored;
    if (fs::exists(name_or_file, ignored) || name_or_file.find_first_of("./") != std::string::npos) {
      throw InputError("schedule " + plumbline::schedule::quoted_text(name_or_file) +
                       ": expected a file that ends in .csv, or one of " + join(schedule::schedule_names()));
    }
  }
  if (dialect) throw InputError("schedule " + name_or_file + ": a dialect is for files, not for names");
  schedule::ScheduleRequest named = request;
  named.name = name_or_file;
  return make_schedule(named);
}

}  // namespace plumbline::conformance
