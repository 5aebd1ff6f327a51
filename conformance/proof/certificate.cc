#include "conformance/proof/certificate.h"

#include <torch/version.h>

#include <array>
#include <nlohmann/json.hpp>

#include "conformance/proof/sums/linear_operators.h"
#include "conformance/proof/terms/normalisations.h"
#include "conformance/report/context.h"
#include "runtime/io/sha256.h"
#include "runtime/io/write_file.h"

namespace plumbline::proof {
namespace {

constexpr const char* kSameComputation =
    "P1, the same computation: every loss, output, value between stages, gradient, buffer, parameter and optimizer "
    "state of the pipelined run is computed by the same operators, with the same arguments, from the same parameters,"
    " buffers, rows and random draws, and added up in the order that the schedule prescribes, as in the unsplit model"
    " run micro-batch by micro-batch; and no operator is executed more often";
constexpr const char* kSameSum =
    "P2, the same sum: every loss, output, value between stages, gradient, buffer, parameter and optimizer state of "
    "the pipelined run equals that of the unsplit model run micro-batch by micro-batch over the real numbers, because"
    " both are the same operators applied to the same sums of the same addends with the same factors; and no operator"
    " is executed more often";

/// In the order of the enumerators.
constexpr std::array<std::string_view, 4> kRelationWords = {"same term", "same sum", "multiple", "another sum"};

nlohmann::json json_of(const Difference& difference) {
  nlohmann::json json = {{"result", difference.key},
                         {"relation", kRelationWords.at(static_cast<size_t>(difference.relation.relation))}};
  if (difference.relation.relation == Relation::Multiple) json["factor"] = to_string(difference.relation.factor);
  if (difference.stage >= 0) json["stage"] = difference.stage;
  return json;
}

}  // namespace

nlohmann::json json_of(const CertifiedRun& run) {
  nlohmann::json json = {{"case", run.run.id.case_id}, {"schedule", run.run.id.schedule}, {"ranks", run.run.id.ranks}};
  if (!run.not_taken.empty()) {
    json["outcome"] = kNotTaken;
    json["why"] = run.not_taken;
    return json;
  }
  const Proof& proof = run.proof;
  json.update({{"stages", run.stages},
               {"microbatches", run.microbatches},
               {"transport", "threads"},
               {"seed", run.seed},
               {"recompute", run.recompute},
               {"remat", run.remat},
               {"mutant", run.mutant},
               {"outcome", outcome_name(proof.outcome)},
               {"why", proof.why},
               {"values", "the case's own tensors"},
               {"root", root_of(proof.results)},
               {"operators", proof.log.operators},
               {"operators_executed", proof.log.executed},
               {"terms", proof.terms},
               {"zeros_left_out", proof.log.zeros},
               {"constants", proof.constants},
               {"numbers_read_by", proof.log.read_numbers}});
  if (!run.run.csv.empty()) json["schedule_csv"] = run.run.csv;
  json["counted_operators"] = proof.counted;
  nlohmann::json& results = json["results"];
  for (const auto& [key, id] : proof.results) results[key] = to_string(id);
  for (const Difference& difference : proof.differ) json["differ"].push_back(json_of(difference));
  return json;
}

const std::vector<std::string>& assumptions() {
  static const std::vector<std::string> all = {
      "A kernel is a function of the elements of its operands, of its other arguments, and of dtypes and sizes: not of "
      "strides, addresses, time or the number of threads.",
      "An operator writes only what its schema declares; the one known exception, batch norm's running statistics, is "
      "treated as declared.",
      "Different terms have different identities: the first 128 bits of a SHA-256.",
      "Numbers that are computed outside of tensors (weights of micro-batches, learning rates, counts of steps) and "
      "the "
      "branches that the program takes are those of this run.",
      "Both runs use the same code for the model, for the loss, for the optimizer and for the seeds of random layers.",
      "The normalisations below keep values.",
      "Of sums: a factor is the fraction with the smallest denominator that rounds to it; the linear operators below "
      "let "
      "factors through; a cast between floating-point types keeps values."};
  return all;
}

const std::vector<std::string>& not_proven() {
  static const std::vector<std::string> all = {
      "That kernels compute what they should, or are deterministic.",
      "Other sizes, other numbers of micro-batches, other branches.",
      "Lifetimes of buffers, memory changed while it is sent, streams of a device; a raw write to a value is noticed "
      "only if its bytes had changed when they were next read.",
      "The norm of all gradients, which leaves the tensors as a number.",
      "That the sum over micro-batches is the gradient of the whole batch."};
  return all;
}

std::string root_of(const ResultTerms& results) {
  std::string text;
  for (const auto& [key, id] : results) text += key + " " + to_string(id) + "\n";
  return sha256(text).substr(0, 32);
}

void write_certificate(const std::filesystem::path& path, Claim claim, const std::vector<CertifiedRun>& runs) {
  nlohmann::json normal = nlohmann::json::array(), all = nlohmann::json::array();
  for (const Normalisation& one : normalisations()) normal.push_back({{"name", one.name}, {"what", one.what}});
  for (const CertifiedRun& run : runs) all.push_back(json_of(run));
  nlohmann::json linear = nlohmann::json::array();
  for (const auto& [name, operands] : linear_operators()) linear.push_back(name);
  const nlohmann::json certificate = {{"format", kRunsFormat},
                                      {"claim", claim == Claim::SameSum ? "sum" : "computation"},
                                      {"meaning", claim == Claim::SameSum ? kSameSum : kSameComputation},
                                      {"plumbline", conformance::plumbline_version()},
                                      {"libtorch", TORCH_VERSION},
                                      {"runs", all},
                                      {"normalisations", {{"version", kNormalisationsVersion}, {"list", normal}}},
                                      {"linear_operators", {{"version", kLinearVersion}, {"list", linear}}},
                                      {"assumptions", assumptions()},
                                      {"not_proven", not_proven()}};
  write_file(path, certificate.dump(1) + "\n");
}

}  // namespace plumbline::proof
