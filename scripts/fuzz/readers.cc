#include "scripts/fuzz/readers.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "bench/gaps/gaps.h"
#include "bench/gaps/step_times.h"
#include "bench/history/bench_run_json.h"
#include "conformance/corpus/case_file.h"
#include "conformance/export/check_export.h"
#include "conformance/judge/verdict/waivers.h"
#include "conformance/protocol/command/backend_file.h"
#include "conformance/protocol/command/command_backend.h"
#include "conformance/protocol/job.h"
#include "conformance/protocol/protocol.h"
#include "conformance/recording/recording.h"
#include "conformance/report/json.h"
#include "conformance/report/read_json.h"
#include "conformance/run/folder/run_record.h"
#include "conformance/run/hosts/rank_facts.h"
#include "reference/result_key.h"
#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"
#include "runtime/partition/joint/json/joint_json.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/schedule/text/csv.h"
#include "runtime/transport/flight/flight_log.h"
#include "runtime/transport/flight/who_waits.h"

namespace plumbline::fuzz {
namespace {

namespace fs = std::filesystem;
using Text = std::string_view;

void read_backend_file(Text text) { conformance::parse_backend_file(std::string(text), "folder/backend.toml"); }

void read_bench_run(Text text) {
  const std::string written = bench::bench_run_json(bench::parse_bench_run(text, "run.json"));
  expect(bench::bench_run_json(bench::parse_bench_run(written, "written")) == written,
         "the run is read as another one");
}

void read_cases(Text text) { conformance::CaseFiles().read(std::string(text), "cases.toml"); }

void read_csv(Text text) {
  const std::string written = schedule::to_csv(schedule::parse_csv(text, "schedule.csv"));
  expect(schedule::to_csv(schedule::parse_csv(written, "written")) == written, "the schedule is read as another one");
}

void read_description(Text text) {
  const std::string written = conformance::description_text(conformance::parse_description(text, "describe"));
  expect(conformance::description_text(conformance::parse_description(written, "written")) == written,
         "the description is read as another one");
}

/// Of one line: the reader of standard output cuts it into lines.
void read_event(Text text) {
  try {
    const conformance::JobEvent event = conformance::parse_event(text.substr(0, text.find('\n')));
    const std::string written = conformance::to_string(event);
    expect(conformance::to_string(conformance::parse_event(written)) == written, "the event is read as another one");
  } catch (const conformance::BadEvent& error) {
    throw InputError(error.what());
  }
}

/// Whatever bytes a log has, its page has one line for each event.
void read_flight_log(Text text) {
  const auto events = transport::flight::read_flight_log(write_temporary_file(text, "rank0.flight"));
  if (!events) throw InputError("no flight log");
  const std::string page = transport::flight::flight_page({{0, *events}, {1, *events}});
  expect(std::ranges::count(page, '\n') <= 60, "an event of the log takes several lines of its page");
}

void read_job(Text text) {
  const std::string written = conformance::job_text(conformance::parse_job(std::string(text), "job.json"));
  expect(conformance::job_text(conformance::parse_job(written, "written")) == written,
         "the job is read as another one");
}

void read_joint_graph(Text text) {
  for (const auto& [name, graph] : partition::read_joint_graph_file(write_temporary_file(text, "graph.json")).graphs) {
    const nlohmann::json written = partition::to_json(graph);
    expect(partition::to_json(partition::joint_graph_from_json(written, "written")) == written,
           "the graph is read as another one");
  }
}

void read_json(Text text) {
  const nlohmann::json json = parse_json(text, "text");
  expect(parse_json(json_text(json), "written") == json, "the value is read as another one");
}

void read_manifest(Text text) { conformance::check_export(write_temporary_file(text, "manifest.json").parent_path()); }

void read_plan(Text text) {
  const conformance::Job job{.cases = {{"a", "gpipe"}, {"b", "1f1b"}}};
  const auto plan = conformance::parse_plan(text, job, "plan");
  const std::string written = conformance::plan_text(job, plan);
  expect(conformance::plan_text(job, conformance::parse_plan(written, job, "written")) == written,
         "the plan is read as another one");
}

void read_policy(Text text) { partition::parse_policy(text, "policy.json"); }

void read_rank_facts(Text text) {
  const std::string written = conformance::to_json(conformance::read_rank_facts(std::string(text)));
  expect(conformance::to_json(conformance::read_rank_facts(written)) == written, "the facts are read as others");
}

void read_recording(Text text) { conformance::read_recording(write_temporary_file(text, "rank0.json").parent_path()); }

void read_report(Text text) {
  const conformance::RunReport report = conformance::read_report_json(write_temporary_file(text, "report.json"));
  const auto written = [](const conformance::RunReport& report) {
    const fs::path file = write_temporary_file("", "written.json");
    conformance::write_report_json(file, report);
    return read_file(file);
  };
  const std::string once = written(report);
  expect(written(conformance::read_report_json(write_temporary_file(once, "once.json"))) == once,
         "the report is read as another one");
}

void read_result_key(Text text) {
  const std::string key(text);
  expect(reference::to_string(reference::parse_result_key(key)) == key, "the key is written as another one");
}

void read_run_record(Text text) {
  const conformance::RunRecord record = conformance::read_run_record(write_temporary_file(text, "run.json"));
  const fs::path again = write_temporary_file("", "written.json");
  conformance::write_run_record(again, record);
  expect(conformance::difference(conformance::read_run_record(again), record).empty(),
         "the run is read as another one");
}

/// From memory, and from a file, whose header is read before its data.
void read_safetensors(Text text) {
  const fs::path file = write_temporary_file(text, "rank0.safetensors");
  bool refused = false;
  TensorMap of_file;
  try {
    of_file = read_tensor_file(file);
  } catch (const InputError&) {
    refused = true;
  }
  try {
    const TensorMap tensors = decode_tensors(text, "rank0.safetensors");
    expect(!refused && tensors == of_file, "the file is read as other tensors than its bytes");
    expect(decode_tensors(encode_tensors(tensors), "written") == tensors, "the tensors are read as others");
  } catch (const InputError&) {
    expect(refused, "the bytes are refused, but not the file");
    throw;
  }
}

/// As the file of one rank of one: what is read is explained.
void read_step_times(Text text) {
  for (const auto& step : bench::parse_rank_times(std::string(text), "rank0.jsonl").steps)
    bench::bubble_text(bench::explain({"measured", {step}}), "ms");
}

void read_verdicts(Text text) {
  const fs::path again = write_temporary_file("", "written.jsonl");
  for (const conformance::Verdict& verdict : conformance::read_jsonl(write_temporary_file(text, "results.jsonl")))
    conformance::append_jsonl(again, verdict);
  const std::string once = read_file(again);
  for (const conformance::Verdict& verdict : conformance::read_jsonl(again)) conformance::append_jsonl(again, verdict);
  expect(read_file(again) == once + once, "a verdict is read as another one");
}

void read_waivers(Text text) {
  conformance::read_waivers(write_temporary_file(text, "waivers.toml"), {"exact-mlp-mean", "tied-lm"});
}

constexpr std::array<Reader, 22> kReaders = {{{"backend_file", read_backend_file},
                                              {"bench_run", read_bench_run},
                                              {"cases", read_cases},
                                              {"csv", read_csv},
                                              {"description", read_description},
                                              {"event", read_event},
                                              {"flight_log", read_flight_log},
                                              {"job", read_job},
                                              {"joint_graph", read_joint_graph},
                                              {"json", read_json},
                                              {"manifest", read_manifest},
                                              {"plan", read_plan},
                                              {"policy", read_policy},
                                              {"rank_facts", read_rank_facts},
                                              {"recording", read_recording},
                                              {"report", read_report},
                                              {"result_key", read_result_key},
                                              {"run_record", read_run_record},
                                              {"safetensors", read_safetensors},
                                              {"step_times", read_step_times},
                                              {"verdicts", read_verdicts},
                                              {"waivers", read_waivers}}};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

}  // namespace plumbline::fuzz
