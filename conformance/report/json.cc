#include "conformance/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "conformance/protocol/report_folder.h"
#include "runtime/io/write_file.h"

namespace plumbline::conformance {
namespace {

using Json = nlohmann::ordered_json;

Json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json optional_index(int index) { return index < 0 ? Json(nullptr) : Json(index); }

Json to_json(const Difference& d) {
  Json json = {{"key", to_string(d.key)},
               {"step", d.key.step},
               {"kind", reference::kind_name(d.key.kind)},
               {"stage", optional_index(d.key.stage)},
               {"microbatch", optional_index(d.key.microbatch)},
               {"name", d.key.name},
               {"stages", d.stages},
               {"what", difference_name(d.what)},
               {"expected_form", d.expected_form},
               {"actual_form", d.actual_form},
               {"sentence", sentence(d)}};
  if (d.what != DifferenceKind::Value && d.what != DifferenceKind::Norm) return json;
  json["index"] = d.index;
  json["position"] = d.position;
  json["expected"] = json_number(d.expected);
  json["actual"] = json_number(d.actual);
  json["expected_text"] = d.expected_text;
  json["actual_text"] = d.actual_text;
  json["differing"] = d.differing;
  json["elements"] = d.elements;
  json["max_abs"] = json_number(d.max_abs);
  json["relative_norm"] = json_number(d.relative_norm);
  json["likeness"] = d.likeness;
  json["bounded"] = d.bounded;
  json["around"] = Json::array();
  for (const Neighbour& n : d.around) {
    json["around"].push_back({{"index", n.index},
                              {"position", n.position},
                              {"expected", n.expected_text},
                              {"actual", n.actual_text},
                              {"differs", n.differs}});
    if (d.bounded) json["around"].back()["ratio_of_bound"] = json_number(n.ratio_of_bound);
  }
  if (d.bounded) {
    json["max_ratio_of_bound"] = json_number(d.max_ratio_of_bound);
    json["norm_limit"] = json_number(d.norm_limit);
  }
  return json;
}

Json to_json(const BoundUse& use) {
  return {{"key", use.key},
          {"ratio", json_number(use.ratio)},
          {"norm_key", use.norm_key},
          {"norm_ratio", json_number(use.norm_ratio)}};
}

Json to_json(const Verdict& v) {
  Json json = {{"case", v.run.case_id},
               {"title", v.title},
               {"schedule", v.run.schedule},
               {"backend", v.backend},
               {"device", v.device},
               {"dtype", v.dtype},
               {"ranks", v.run.ranks},
               {"transport", v.run.transport},
               {"truth", to_string(v.finding.truth)},
               {"status", status_name(v.finding.status)},
               {"reason", v.finding.reason},
               {"sentence", sentence(v)},
               {"checked", v.finding.checked},
               {"tensors", v.finding.tensors},
               {"elements", v.finding.elements},
               {"seconds", json_number(v.seconds)},
               {"repro", v.repro},
               {"log", v.log},
               {"waiver", v.waiver},
               {"bound_use", v.finding.bound_use ? to_json(*v.finding.bound_use) : Json(nullptr)},
               {"first", v.finding.first ? to_json(*v.finding.first) : Json(nullptr)},
               {"differing_tensors", v.finding.differing},
               {"pattern", v.finding.pattern},
               {"differences", Json::array()}};
  for (const Difference& difference : v.finding.all) json["differences"].push_back(to_json(difference));
  return json;
}

Json to_json(const Throughput& t) {
  Json json = {{"schedule", t.schedule},
               {"workload", t.workload},
               {"ranks", t.ranks},
               {"microbatches", t.microbatches},
               {"step_seconds", json_number(t.step_seconds)},
               {"microbatches_per_second", json_number(t.microbatches_per_second)},
               {"bubble_measured", json_number(t.bubble_measured)},
               {"bubble_ideal", json_number(t.bubble_ideal)},
               {"ratio_to_ideal_step", json_number(t.ratio_to_ideal_step)},
               {"rank_times", Json::array()}};
  for (const RankTime& time : t.rank_times)
    json["rank_times"].push_back({{"busy", json_number(time.busy)}, {"waiting", json_number(time.waiting)}});
  return json;
}

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void write_report_json(const std::filesystem::path& path, const RunReport& report) {
  Json json = {
      {"schema", report_schema},   {"context", Json::object()},      {"environment", Json::object()},
      {"backend", Json::object()}, {"exit_code", exit_code(report)}, {"wall_seconds", json_number(report.wall_seconds)},
      {"summary", Json::object()}, {"verdicts", Json::array()},      {"throughput", Json::array()},
      {"broken", report.broken},   {"notes", report.notes}};
  for (const auto& [name, value] : report.context) json["context"][name] = value;
  for (const auto& [name, value] : report.environment) json["environment"][name] = value;
  const BackendIdentity& backend = report.backend;
  json["backend"] = {{"name", backend.name},
                     {"version", backend.version},
                     {"device", backend.device},
                     {"describe", backend.describe.empty() ? Json(nullptr) : Json::parse(backend.describe)}};
  for (const auto& [status, count] : count_statuses(report.verdicts)) json["summary"][status_name(status)] = count;
  for (const Verdict& verdict : report.verdicts) json["verdicts"].push_back(to_json(verdict));
  for (size_t i = 0; i < report.throughput.size(); ++i) {
    const Throughput& throughput = report.throughput[i];
    json["throughput"].push_back(to_json(throughput));
    json["throughput"].back()["timeline"] = nullptr;
    if (throughput.timeline.empty()) continue;
    const std::filesystem::path name = timeline_name(i), picture = path.parent_path() / name;
    std::filesystem::create_directories(picture.parent_path());
    write_file(picture, throughput.timeline);
    json["throughput"].back()["timeline"] = name.string();
  }
  write_file(path, text_of(json, 2));
}

void append_jsonl(const std::filesystem::path& path, const Verdict& verdict) {
  append_file(path, text_of(to_json(verdict), -1));
}

}  // namespace plumbline::conformance
