#include "conformance/proof/verify.h"

#include <torch/version.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "conformance/proof/certificate.h"
#include "conformance/proof/prove_cases.h"
#include "conformance/proof/rows/step_cases.h"
#include "conformance/report/context.h"
#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"

namespace plumbline::proof {
namespace {

/// Of the certified runs, or steps.
struct Tally {
  std::map<std::string, int> confirmed;  ///< by outcome
  int differ = 0, not_taken = 0;
};

/// Where two objects of a certificate first differ, and what is there; members of members are looked at one by one.
std::string first_difference(const nlohmann::json& certified, const nlohmann::json& found, const std::string& place) {
  if (certified.is_object() && found.is_object()) {
    for (const auto& [key, value] : certified.items()) {
      const std::string here = place.empty() ? key : place + " " + key;
      if (!found.contains(key)) return here + ": certified, and not found now";
      if (found.at(key) != value) return first_difference(value, found.at(key), here);
    }
    for (const auto& [key, value] : found.items())
      if (!certified.contains(key)) return (place.empty() ? key : place + " " + key) + ": found now, and not certified";
  }
  return place + ": " + certified.dump().substr(0, 60) + " is certified, " + found.dump().substr(0, 60) + " is found";
}

void compare(const std::string& name, const std::string& outcome, const nlohmann::json& certified,
             const nlohmann::json& found, Tally& tally, std::ostream& out) {
  if (certified == found) {
    ++tally.confirmed[outcome];
    out << "CONFIRMED " << name << ": " << outcome << std::endl;
    return;
  }
  ++tally.differ;
  out << "NOT CONFIRMED " << name << ": " << first_difference(certified, found, {}) << std::endl;
}

void verify_runs(const JsonPlace& certificate, Tally& tally, std::ostream& out) {
  CasesOptions options;
  if (certificate["claim"].one_of({"computation", "sum"}) == 1) options.claim = Claim::SameSum;
  for (const JsonPlace& place : certificate["runs"].items()) {
    const std::string outcome = place["outcome"].text();
    if (outcome == kNotTaken) {
      ++tally.not_taken;
      continue;
    }
    conformance::PlannedRun run{{.case_id = place["case"].text(),
                                 .schedule = place["schedule"].text(),
                                 .ranks = place["ranks"].small(1, 64),
                                 .transport = place["transport"].text()}};
    if (const auto csv = place.find("schedule_csv")) run.csv = csv->text();
    options.run.microbatches = place["microbatches"].small(1, 65536);
    options.run.seed = static_cast<uint64_t>(place["seed"].integer(0));
    options.run.recompute = place["recompute"].text();
    options.run.remat.mode = place["remat"].text();
    options.run.mutant = place["mutant"].text();
    compare(to_string(run.id), outcome, place.json(), json_of(prove_run(run, options)), tally, out);
  }
}

void verify_steps(const JsonPlace& certificate, Tally& tally, std::ostream& out) {
  const auto seed = static_cast<uint64_t>(certificate["seed"].integer(0));
  for (const JsonPlace& place : certificate["cases"].items()) {
    const std::string answer = place["answer"].text();
    if (answer == kNotTaken) {
      ++tally.not_taken;
      continue;
    }
    const std::string id = place["case"].text();
    const int microbatches = place["microbatches"].small(1, 65536);
    nlohmann::json certified = place.json(), found = json_of(prove_step(id, microbatches, seed));
    for (nlohmann::json* step : {&certified, &found}) step->erase("difference_in_this_run");  // of random layers
    compare(id, answer, certified, found, tally, out);
  }
}

}  // namespace

int verify_certificate(const std::filesystem::path& path, std::ostream& out) {
  const nlohmann::json document = parse_json(read_file(path), path.string());
  const JsonPlace certificate(document, path.string());
  Tally tally;
  if (certificate["format"].one_of({kRunsFormat, kStepsFormat}) == 0)
    verify_runs(certificate, tally, out);
  else
    verify_steps(certificate, tally, out);
  if (tally.confirmed.empty() && tally.differ == 0)
    throw InputError(path.string() + ": nothing can be confirmed: it has no run that was taken");
  out << "\n";
  for (const auto& [outcome, count] : tally.confirmed) out << "confirmed " << count << ": " << outcome << "\n";
  if (tally.differ > 0) out << "not confirmed " << tally.differ << "\n";
  if (tally.not_taken > 0) out << "not taken " << tally.not_taken << "\n";
  const std::string by = certificate["plumbline"].text(), with = certificate["libtorch"].text();
  if (tally.differ > 0 && (by != conformance::plumbline_version() || with != TORCH_VERSION))
    out << "note: certified by plumbline " << by << " with LibTorch " << with << ", checked by "
        << conformance::plumbline_version() << " with " << TORCH_VERSION << "; another version may have other terms\n";
  if (tally.differ > 0) return 2;
  const auto is_proof = [](const auto& outcome) { return outcome.first == "proven" || outcome.first == "same"; };
  return std::ranges::all_of(tally.confirmed, is_proof) ? 0 : 1;
}

}  // namespace plumbline::proof
