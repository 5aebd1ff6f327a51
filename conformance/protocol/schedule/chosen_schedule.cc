#include "conformance/protocol/schedule/chosen_schedule.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "conformance/protocol/schedule/schedule_source.h"
#include "runtime/error.h"
#include "runtime/io/gzip.h"
#include "runtime/schedule/check/check.h"
#include "runtime/schedule/orders/schedule_kinds.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/text/counted.h"
#include "runtime/text/join.h"
#include "runtime/text/patterns.h"

namespace plumbline::conformance {
namespace {

ChosenSchedule choose_file(const std::string& path) {
  const ChosenSchedule chosen{path, read_text(path)};
  const schedule::Schedule schedule = schedule::parse_csv(chosen.csv, path);
  // Whether its transfers are right depends on the model: why_unsupported() checks them.
  if (!schedule::has_communication(schedule))
    schedule::require_valid(schedule, schedule::chain_edges(schedule.stages),
                            {.forward_only = !schedule::has_backward(schedule)});
  return chosen;
}

}  // namespace

std::vector<std::string> matching_schedules(const std::vector<std::string>& patterns) {
  return matching(schedule::schedule_names(), patterns, [](const std::string& pattern) {
    return "no schedule matches '" + pattern + "'; expected one of " + join(schedule::schedule_names()) +
           ", or a .csv file";
  });
}

std::vector<std::string> expand_schedules(const std::string& patterns) {
  std::vector<std::string> wanted = split_at_commas(patterns), files;
  if (wanted.empty()) wanted = {patterns};
  std::ranges::copy_if(wanted, std::back_inserter(files), is_schedule_file);
  std::erase_if(wanted, is_schedule_file);
  std::vector<std::string> expanded = matching_schedules(wanted);
  expanded.insert(expanded.end(), files.begin(), files.end());
  return expanded;
}

std::vector<ChosenSchedule> choose_schedules(const std::string& patterns) {
  std::set<std::string> file_names;
  std::vector<ChosenSchedule> chosen;
  for (const std::string& name_or_file : expand_schedules(patterns)) {
    if (!is_schedule_file(name_or_file)) {
      chosen.push_back({name_or_file, ""});
      continue;
    }
    chosen.push_back(choose_file(name_or_file));
    // The file's name becomes part of the path of results.
    const std::string name = std::filesystem::path(name_or_file).filename().string();
    if (!file_names.insert(name).second) throw InputError("--schedule: two files are named " + name);
  }
  return chosen;
}

schedule::Schedule make_schedule(const ChosenSchedule& chosen, int ranks, int microbatches) {
  if (chosen.csv.empty()) return schedule::make_schedule(chosen.name, ranks, microbatches);
  return parse_schedule_file(chosen.csv, chosen.name, {.name = {}, .ranks = ranks, .microbatches = microbatches});
}

schedule::Schedule schedule_over_stages(const ChosenSchedule& chosen, int stages, int ranks, int microbatches) {
  std::string reason;
  int others = 0;  // its number of stages on the largest possible number of ranks
  for (int n = ranks != 0 ? ranks : stages; n >= 1; --n) {
    try {
      const int count =
          chosen.csv.empty() ? n : static_cast<int>(schedule::parse_csv(chosen.csv, chosen.name).ranks.size());
      schedule::Schedule schedule = make_schedule(chosen, ranks != 0 ? n : count, microbatches);
      if (schedule.stages == stages) return schedule;
      if (others == 0) others = schedule.stages;
    } catch (const InputError& error) {
      if (reason.empty()) reason = error.what();
    }
    if (ranks != 0 || !chosen.csv.empty()) break;
  }
  if (others == 0) throw InputError(reason);
  throw InputError("schedule " + chosen.name + ": it cannot have " + counted(stages, "stage") + " on " +
                   (ranks == 0 ? "any number of ranks" : counted(ranks, "rank")));
}

}  // namespace plumbline::conformance
