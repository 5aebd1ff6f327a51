#include "conformance/run/folder/run_record.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/protocol/device_kind.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/text/number.h"

namespace plumbline::conformance {
namespace {

constexpr const char* kRunSchema = "plumbline-run/1";

/// A string: readers whose numbers are doubles would round it.
uint64_t seed_at(const JsonPlace& place) {
  const std::optional<uint64_t> seed = parse_number<uint64_t>(place.text());
  if (!seed) place.fail("a whole number from 0 as text");
  return *seed;
}

std::string or_none(const std::string& value) { return value.empty() ? "none" : value; }

}  // namespace

bool RunRecord::keeps_failures_only() const {
  return std::ranges::find(options, std::pair<std::string, std::string>(kKeepOption, kKeepFailures)) != options.end();
}

void write_run_record(const std::filesystem::path& path, const RunRecord& record) {
  nlohmann::ordered_json json = {{"schema", kRunSchema},
                                 {"backend", record.backend},
                                 {"describe", nullptr},
                                 {"seed", std::to_string(record.seed)},
                                 {"microbatches", record.microbatches},
                                 {"options", nlohmann::ordered_json::object()},
                                 {"runs", nlohmann::ordered_json::array()}};
  if (!record.describe.empty()) json["describe"] = nlohmann::ordered_json::parse(record.describe);
  for (const auto& [name, value] : record.options) json["options"][name] = value;
  for (const PlannedRun& run : record.runs)
    json["runs"].push_back({{"case", run.id.case_id},
                            {"schedule", run.id.schedule},
                            {"csv", run.csv},
                            {"ranks", run.id.ranks},
                            {"transport", run.id.transport},
                            {"unsupported", run.unsupported}});
  write_file(path, json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

RunRecord read_run_record(const std::filesystem::path& path) {
  const nlohmann::json document = parse_json(read_file(path), path.string());
  const JsonPlace place(document, path.string());
  const JsonPlace schema = place["schema"];
  if (schema.json() != kRunSchema) schema.fail("the schema \"" + std::string(kRunSchema) + "\"");
  place.expect_only({"schema", "backend", "describe", "seed", "microbatches", "options", "runs"});
  constexpr int most = 4096;  // as --ranks takes them
  RunRecord record;
  record.backend = place["backend"].text();
  if (const JsonPlace describe = place["describe"]; !describe.is_null()) record.describe = json_text(describe.json());
  record.seed = seed_at(place["seed"]);
  record.microbatches = place["microbatches"].small(0, 65536);
  for (const auto& [name, value] : place["options"].members("an object of texts")) {
    if (name == "device") value.one_of(kDeviceWords);
    record.options.emplace_back(name, value.text());
  }
  std::set<RunId> ids;
  if (place["runs"].items().empty()) place["runs"].fail("at least one run");
  for (const JsonPlace& run : place["runs"].items()) {
    run.expect_only({"case", "schedule", "csv", "ranks", "transport", "unsupported"});
    record.runs.push_back(
        {{run["case"].text(), run["schedule"].text(), run["ranks"].small(1, most), run["transport"].text()},
         run["csv"].text(),
         run["unsupported"].text()});
    if (!ids.insert(record.runs.back().id).second) run.refuse("appears twice");
  }
  return record;
}

std::string difference(const RunRecord& earlier, const RunRecord& now) {
  const auto differ = [](const std::string& name, const std::string& before, const std::string& is) {
    return name + " is " + or_none(is) + ", the interrupted run had " + or_none(before);
  };
  if (earlier.backend != now.backend) return differ("backend", earlier.backend, now.backend);
  if (earlier.describe.empty() != now.describe.empty() ||
      (!now.describe.empty() && nlohmann::json::parse(earlier.describe) != nlohmann::json::parse(now.describe)))
    return differ("what the backend says of itself", earlier.describe, now.describe);
  if (earlier.seed != now.seed) return differ("seed", std::to_string(earlier.seed), std::to_string(now.seed));
  if (earlier.microbatches != now.microbatches)
    return differ("microbatches", std::to_string(earlier.microbatches), std::to_string(now.microbatches));
  std::map<std::string, std::pair<std::string, std::string>> options;
  for (const auto& [name, value] : earlier.options) options[name].first = value;
  for (const auto& [name, value] : now.options) options[name].second = value;
  for (const auto& [name, values] : options)
    if (values.first != values.second) return differ(name, values.first, values.second);
  if (earlier.runs.size() != now.runs.size())
    return differ("the number of runs", std::to_string(earlier.runs.size()), std::to_string(now.runs.size()));
  for (size_t i = 0; i < now.runs.size(); ++i) {
    if (earlier.runs[i] == now.runs[i]) continue;
    const bool same_name = earlier.runs[i].id == now.runs[i].id;
    const std::string more = same_name ? " with another schedule or another reason not to run it" : "";
    return differ("run " + std::to_string(i), to_string(earlier.runs[i].id), to_string(now.runs[i].id) + more);
  }
  return {};
}

}  // namespace plumbline::conformance
