#include "conformance/report/read_json.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "conformance/report/json.h"
#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"
#include "runtime/text/join.h"

namespace plumbline::conformance {
namespace {

constexpr int max_int = std::numeric_limits<int>::max();

double number(const JsonPlace& place) {
  if (place.json().is_number()) return place.json().get<double>();
  if (place.json() == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (place.json() == "inf") return std::numeric_limits<double>::infinity();
  if (place.json() == "-inf") return -std::numeric_limits<double>::infinity();
  place.fail("a number, \"inf\", \"-inf\" or \"nan\"");
}

Status status_at(const JsonPlace& place) {
  const std::optional<Status> status = status_of(place.text());
  if (status) return *status;
  std::vector<std::string_view> names;
  for (const Status known : all_statuses) names.push_back(status_name(known));
  place.fail("a status: " + join(names));
}

reference::ResultKey key_at(const JsonPlace& place) {
  try {
    return reference::parse_result_key(place.text());
  } catch (const InputError& error) {
    place.refuse(error.what());
  }
}

Neighbour neighbour_at(const JsonPlace& place, bool bounded) {
  place.expect_only({"index", "position", "expected", "actual", "differs", "ratio_of_bound"});
  Neighbour n{place["index"].integer(0), place["position"].integers(0), place["expected"].text(),
              place["actual"].text(), place["differs"].boolean()};
  if (bounded) n.ratio_of_bound = number(place["ratio_of_bound"]);
  return n;
}

Difference difference_at(const JsonPlace& place) {
  // step, kind, stage, microbatch and name repeat the key, and sentence repeats all of it, for readers without a
  // parser.
  place.expect_only({"key",           "step",        "kind",      "stage",         "microbatch",
                     "name",          "stages",      "what",      "expected_form", "actual_form",
                     "sentence",      "index",       "position",  "expected",      "actual",
                     "expected_text", "actual_text", "differing", "elements",      "max_abs",
                     "relative_norm", "likeness",    "bounded",   "around",        "max_ratio_of_bound",
                     "norm_limit"});
  Difference d;
  d.key = key_at(place["key"]);
  for (const JsonPlace& stage : place["stages"].items()) d.stages.push_back(stage.small(0, max_int));
  d.what =
      static_cast<DifferenceKind>(place["what"].one_of({"missing", "unexpected", "dtype", "shape", "value", "norm"}));
  d.expected_form = place["expected_form"].text();
  d.actual_form = place["actual_form"].text();
  if (d.what != DifferenceKind::Value && d.what != DifferenceKind::Norm) return d;
  d.index = place["index"].integer(0);
  d.position = place["position"].integers(0);
  d.expected = number(place["expected"]);
  d.actual = number(place["actual"]);
  d.expected_text = place["expected_text"].text();
  d.actual_text = place["actual_text"].text();
  d.differing = place["differing"].integer(0);
  d.elements = place["elements"].integer(0);
  d.max_abs = number(place["max_abs"]);
  d.relative_norm = number(place["relative_norm"]);
  d.likeness = place["likeness"].text();
  d.bounded = place["bounded"].boolean();
  for (const JsonPlace& item : place["around"].items()) d.around.push_back(neighbour_at(item, d.bounded));
  if (d.bounded) {
    d.max_ratio_of_bound = number(place["max_ratio_of_bound"]);
    d.norm_limit = number(place["norm_limit"]);
  }
  return d;
}

Verdict verdict_at(const JsonPlace& place) {
  place.expect_only(
      {"case",   "title",     "schedule", "backend",           "device",  "dtype",      "ranks",   "transport", "truth",
       "status", "reason",    "sentence", "checked",           "tensors", "elements",   "seconds", "repro",     "log",
       "waiver", "bound_use", "first",    "differing_tensors", "pattern", "differences"});
  Verdict v;
  v.run.case_id = place["case"].text();
  v.title = place["title"].text();
  v.run.schedule = place["schedule"].text();
  v.backend = place["backend"].text();
  v.device = place["device"].text();
  v.dtype = place["dtype"].text();
  v.run.ranks = place["ranks"].small(0, max_int);
  v.run.transport = place["transport"].text();
  v.finding.truth = static_cast<reference::Truth>(place["truth"].one_of(reference::kTruthWords));
  v.finding.status = status_at(place["status"]);
  if (const std::string headline(status_headline(v.finding.status)); !place["sentence"].text().starts_with(headline))
    place["sentence"].fail("one that begins with " + headline + ", its status");
  v.finding.reason = place["reason"].text();
  v.finding.checked = place["checked"].texts();
  v.finding.tensors = place["tensors"].integer(0);
  v.finding.elements = place["elements"].integer(0);
  v.seconds = number(place["seconds"]);
  v.repro = place["repro"].text();
  if (const std::optional<JsonPlace> log = place.find("log")) v.log = log->text();  // not in a report before 0.2
  v.waiver = place["waiver"].text();
  if (const JsonPlace use = place["bound_use"]; !use.is_null()) {
    use.expect_only({"key", "ratio", "norm_key", "norm_ratio"});
    v.finding.bound_use =
        BoundUse{use["key"].text(), number(use["ratio"]), use["norm_key"].text(), number(use["norm_ratio"])};
  }
  if (const JsonPlace first = place["first"]; !first.is_null()) v.finding.first = difference_at(first);
  v.finding.differing = place["differing_tensors"].integer(0);
  v.finding.pattern = place["pattern"].text();
  for (const JsonPlace& item : place["differences"].items()) v.finding.all.push_back(difference_at(item));
  return v;
}

Throughput throughput_at(const JsonPlace& place, const std::filesystem::path& folder) {
  place.expect_only({"schedule", "workload", "ranks", "microbatches", "step_seconds", "microbatches_per_second",
                     "bubble_measured", "bubble_ideal", "ratio_to_ideal_step", "rank_times", "timeline"});
  Throughput t;
  t.schedule = place["schedule"].text();
  t.workload = place["workload"].text();
  t.ranks = place["ranks"].small(1, max_int);
  t.microbatches = place["microbatches"].small(1, max_int);
  t.step_seconds = number(place["step_seconds"]);
  t.microbatches_per_second = number(place["microbatches_per_second"]);
  t.bubble_measured = number(place["bubble_measured"]);
  t.bubble_ideal = number(place["bubble_ideal"]);
  t.ratio_to_ideal_step = number(place["ratio_to_ideal_step"]);
  for (const JsonPlace& time : place["rank_times"].items())
    t.rank_times.push_back({number(time["busy"]), number(time["waiting"])});
  if (const JsonPlace timeline = place["timeline"]; !timeline.is_null()) {
    const std::string name = timeline.text();
    if (leads_out(name)) timeline.fail("the name of a file in the report's folder");
    t.timeline = read_file(folder / name);
  }
  return t;
}

std::vector<std::pair<std::string, std::string>> pairs_at(const JsonPlace& place) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, value] : place.members("an object of texts")) pairs.emplace_back(name, value.text());
  return pairs;
}

}  // namespace

RunReport read_report_json(const std::filesystem::path& path) {
  const nlohmann::json document = parse_json(read_file(path), path.string());
  const JsonPlace place(document, path.string());
  const JsonPlace schema = place["schema"];
  if (schema.json() != report_schema) schema.fail("the schema \"" + std::string(report_schema) + "\"");
  place.expect_only({"schema", "context", "environment", "backend", "exit_code", "wall_seconds", "summary", "verdicts",
                     "throughput", "broken", "notes"});
  RunReport report;
  report.context = pairs_at(place["context"]);
  report.environment = pairs_at(place["environment"]);
  const JsonPlace backend = place["backend"];
  report.backend = {backend["name"].text(), backend["version"].text(), backend["device"].text(), {}};
  if (const JsonPlace describe = backend["describe"]; !describe.is_null())
    report.backend.describe = json_text(describe.json());
  for (const JsonPlace& item : place["verdicts"].items()) report.verdicts.push_back(verdict_at(item));
  for (const JsonPlace& item : place["throughput"].items())
    report.throughput.push_back(throughput_at(item, path.parent_path()));
  report.broken = place["broken"].texts();
  report.notes = place["notes"].texts();
  report.wall_seconds = number(place["wall_seconds"]);
  if (const JsonPlace code = place["exit_code"]; code.integer(0) != exit_code(report))
    code.fail(std::to_string(exit_code(report)) + ", as its verdicts have it");
  std::map<std::string, int> counts;
  for (const auto& [status, count] : count_statuses(report.verdicts)) counts.emplace(status_name(status), count);
  if (place["summary"].json() != nlohmann::json(counts)) place["summary"].fail("the counts of its verdicts");
  return report;
}

std::vector<Verdict> read_jsonl(const std::filesystem::path& path, size_t* complete_bytes) {
  const std::string text = read_file(path);
  std::vector<Verdict> verdicts;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string source = path.string() + ":" + std::to_string(verdicts.size() + 1);
    const nlohmann::json line = parse_json(std::string_view(text).substr(begin, end - begin), source);
    verdicts.push_back(verdict_at(JsonPlace(line, source)));
  }
  if (complete_bytes != nullptr) *complete_bytes = begin;
  return verdicts;
}

}  // namespace plumbline::conformance
