#include "conformance/protocol/job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "conformance/protocol/device_kind.h"
#include "conformance/protocol/report_folder.h"
#include "runtime/engine/stage/recompute_options.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"

namespace plumbline::conformance {

namespace {

constexpr const char* kFormat = "plumbline-job/1";

constexpr int kMost = 1 << 20;  // ranks, micro-batches, rows, steps

/// Members that the file contains only if they differ from their defaults.
struct Text {
  const char* name;
  std::string Job::* member;
};
constexpr Text kTexts[] = {{"mutant", &Job::mutant}, {"recompute", &Job::recompute},
                           {"remat", &Job::remat},   {"remat_policy", &Job::remat_policy},
                           {"wire", &Job::wire},     {"device", &Job::device},
                           {"corpus", &Job::corpus}};

double not_negative(const JsonPlace& place) {
  if (!place.json().is_number() || !(place.json().get<double>() >= 0)) place.fail("a number of at least 0");
  return place.json().get<double>();
}

/// A part of the paths of results and logs, which stay below the folder of the output.
std::string path_below(const JsonPlace& place) {
  if (leads_out(place.text())) place.fail("a path without \"..\" below the output");
  return place.text();
}

JobCase read_case(const JsonPlace& json) {
  json.expect_only({"id", "schedule", "csv", "folder", "results"});
  JobCase item{
      .id = path_below(json["id"]), .schedule = json["schedule"].text(), .results = path_below(json["results"])};
  if (const auto csv = json.find("csv")) item.csv = csv->text();
  if (const auto folder = json.find("folder")) item.folder = folder->text();
  return item;
}

JobThroughput read_throughput(const JsonPlace& json) {
  json.expect_only({"schedule", "model", "forward_ms", "backward_ms", "rows", "microbatches", "steps", "trace"});
  return {json["schedule"].text(),           json["model"].text(),         not_negative(json["forward_ms"]),
          not_negative(json["backward_ms"]), json["rows"].small(0, kMost), json["microbatches"].small(0, kMost),
          json["steps"].small(0, kMost),     json["trace"].boolean()};
}

nlohmann::json to_json(const JobCase& c) {
  nlohmann::json json = {{"id", c.id}, {"schedule", c.schedule}, {"results", result_prefix(c)}};
  if (!c.csv.empty()) json["csv"] = c.csv;
  if (!c.folder.empty()) json["folder"] = c.folder;
  return json;
}

nlohmann::json to_json(const JobThroughput& t) {
  return {{"schedule", t.schedule},
          {"model", t.model},
          {"forward_ms", t.forward_ms},
          {"backward_ms", t.backward_ms},
          {"rows", t.rows},
          {"microbatches", t.microbatches},
          {"steps", t.steps},
          {"trace", t.trace}};
}

}  // namespace

std::string job_text(const Job& job) {
  nlohmann::json json = {{"format", kFormat},
                         {"ranks", job.ranks},
                         {"seed", job.seed},
                         {"timeout_seconds", job.timeout_seconds},
                         {"cases", nlohmann::json::array()}};
  if (job.microbatches != 0) json["microbatches"] = job.microbatches;
  for (const Text& text : kTexts)
    if (job.*text.member != Job{}.*text.member) json[text.name] = job.*text.member;
  for (const JobCase& c : job.cases) json["cases"].push_back(to_json(c));
  for (const JobThroughput& item : job.throughput) json["throughput"].push_back(to_json(item));
  return json.dump(1) + "\n";
}

Job parse_job(const std::string& text, const std::string& source) {
  const nlohmann::json document = parse_json(text, source);
  const JsonPlace json(document, source);
  if (json["format"].json() != kFormat) json["format"].fail(std::string("\"") + kFormat + "\"");
  json.expect_only({"format", "ranks", "seed", "timeout_seconds", "microbatches", "mutant", "recompute", "remat",
                    "remat_policy", "wire", "device", "corpus", "cases", "throughput"});
  Job job;
  job.ranks = json["ranks"].small(1, kMost);
  const nlohmann::json& seed = json["seed"].json();
  if (!seed.is_number_unsigned()) json["seed"].fail("a whole number of at least 0");
  job.seed = seed.get<uint64_t>();
  job.timeout_seconds = not_negative(json["timeout_seconds"]);
  if (const auto count = json.find("microbatches")) job.microbatches = count->small(1, kMost);
  for (const Text& text : kTexts)
    if (const auto place = json.find(text.name)) job.*text.member = place->text();
  if (const auto recompute = json.find("recompute")) recompute->one_of(engine::kRecomputeWords);
  if (const auto device = json.find("device")) device->one_of(kDeviceWords);
  for (const JsonPlace& item : json["cases"].items()) job.cases.push_back(read_case(item));
  if (const auto items = json.find("throughput"))
    for (const JsonPlace& item : items->items()) job.throughput.push_back(read_throughput(item));
  return job;
}

void write_job(const std::filesystem::path& path, const Job& job) { write_file(path, job_text(job)); }

Job read_job(const std::filesystem::path& path) { return parse_job(read_file(path), "job file " + path.string()); }

}  // namespace plumbline::conformance
