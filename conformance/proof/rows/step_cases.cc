#include "conformance/proof/rows/step_cases.h"

#include <torch/version.h>

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "conformance/corpus/corpus.h"
#include "conformance/proof/certificate.h"
#include "conformance/proof/rows/lemmas.h"
#include "conformance/proof/scaled_case.h"
#include "conformance/proof/sums/linear_operators.h"
#include "conformance/report/context.h"
#include "runtime/error.h"
#include "runtime/io/write_file.h"

namespace plumbline::proof {
namespace {

constexpr const char* kSameStep =
    "P3, the same step: over the real numbers, for all contents of inputs and parameters of these sizes, the losses of "
    "the micro-batches and the gradient of every parameter, each times its weight, add up to those of the whole batch";

const std::vector<std::string>& step_assumptions() {
  static const std::vector<std::string> all = {
      "The lemmas below are true of all sizes. Each is tested against LibTorch, for every division of small sizes.",
      "An operator writes only what its schema declares.",
      "Numbers that are computed outside of tensors, the branches that the program takes, and counts of targets by "
      "which a mean divides are those of this run.",
      "Memory that no operator wrote and that had the same bytes in all executions is the same for all inputs.",
      "Around operators the program does the same in all executions: it takes the same tensors and the same parts of "
      "them, and changes no memory. This run's numbers, which agree, are all that speaks for it."};
  return all;
}

const std::vector<std::string>& not_proven_of_steps() {
  static const std::vector<std::string> all = {
      "Rounding: sums over the real numbers.", "Other sizes, other numbers of micro-batches, other branches.",
      "That the engine computes what the unsplit model computes for each micro-batch: `--claim computation` does."};
  return all;
}

std::string verdict(StepAnswer answer) {
  constexpr std::array kWords = {"PROVEN", "NO", "UNDECIDED"};
  return kWords.at(static_cast<size_t>(answer));
}

std::string line_of(const CertifiedStep& certified) {
  const StepProof& proof = certified.proof;
  std::string line = verdict(proof.answer) + " " + certified.c.id + ": ";
  if (proof.answer == StepAnswer::Same)
    return line + "the step of " + std::to_string(certified.c.microbatches) +
           " micro-batches is the step of the whole batch; gradients of " + std::to_string(proof.gradients.size()) +
           " parameters";
  line += proof.why + "; in this run the results ";
  if (proof.answer == StepAnswer::Undecided) return line + "agree";
  return line + "differ by " + std::to_string(std::lround(100 * proof.difference)) + " %";
}

void write_certificate(const StepCasesOptions& options, const std::vector<CertifiedStep>& steps) {
  nlohmann::json all = nlohmann::json::array(), lemmas = nlohmann::json::array(), linear = nlohmann::json::array();
  for (const CertifiedStep& step : steps) all.push_back(json_of(step));
  for (const auto& [name, lemma] : row_lemmas()) lemmas.push_back(name);
  for (const auto& [name, operands] : linear_operators()) linear.push_back(name);
  const nlohmann::json certificate = {{"format", kStepsFormat},
                                      {"claim", "step"},
                                      {"meaning", kSameStep},
                                      {"plumbline", conformance::plumbline_version()},
                                      {"libtorch", TORCH_VERSION},
                                      {"seed", options.seed},
                                      {"cases", all},
                                      {"row_lemmas", {{"version", kLemmasVersion}, {"list", lemmas}}},
                                      {"linear_operators", {{"version", kLinearVersion}, {"list", linear}}},
                                      {"assumptions", step_assumptions()},
                                      {"not_proven", not_proven_of_steps()}};
  write_file(options.certificate, certificate.dump(1) + "\n");
}

/// "3/10 x 2, 1/5 x 2"
std::string runs_of(const std::vector<Rational>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    if (!text.empty()) text += ", ";
    text += to_string(numbers[i]);
    if (end - i > 1) text += " x " + std::to_string(end - i);
    i = end;
  }
  return text;
}

}  // namespace

nlohmann::json json_of(const CertifiedStep& certified) {
  const StepProof& proof = certified.proof;
  nlohmann::json json = {{"case", certified.c.id}};
  if (!certified.not_taken.empty()) {
    json["answer"] = kNotTaken;
    json["why"] = certified.not_taken;
    return json;
  }
  nlohmann::json weights = nlohmann::json::array();
  for (const LossWeight& weight : proof.weights)
    weights.push_back({{"loss", weight.loss},
                       {"microbatch", weight.microbatch},
                       {"needed", to_string(weight.needed)},
                       {"used", to_string(weight.used)}});
  json.update({{"microbatches", certified.c.microbatches},
               {"rows", certified.c.rows},
               {"answer", answer_name(proof.answer)},
               {"why", proof.why},
               {"operator", proof.op},
               {"module", proof.module},
               {"gradients", proof.gradients},
               {"weights", weights},
               {"values", proof.values},
               {"lemmas_used", proof.lemmas},
               {"difference_in_this_run", proof.difference}});
  return json;
}

std::vector<std::string> weight_lines(const std::vector<LossWeight>& weights) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < weights.size();) {
    std::vector<Rational> needed, used;
    const std::string& loss = weights[i].loss;
    for (; i < weights.size() && weights[i].loss == loss; ++i) {
      needed.push_back(weights[i].needed);
      used.push_back(weights[i].used);
    }
    lines.push_back(loss + ": needed " + runs_of(needed) + "; used " + runs_of(used));
  }
  return lines;
}

CertifiedStep prove_step(const std::string& id, int microbatches, uint64_t seed) {
  CertifiedStep certified{.c = scaled(conformance::find_case(id), microbatches)};
  try {
    certified.proof = prove_same_step(certified.c, seed);
  } catch (const InputError& error) {
    certified.not_taken = error.what();
  }
  return certified;
}

int prove_steps(const StepCasesOptions& options, std::ostream& out) {
  std::vector<CertifiedStep> all;
  std::map<StepAnswer, int> counts;
  std::map<std::string, int> not_taken;  // by reason
  for (const reference::Case& c : conformance::select(conformance::corpus(), options.cases)) {
    all.push_back(prove_step(c.id, options.microbatches, options.seed));
    const CertifiedStep& certified = all.back();
    if (!certified.not_taken.empty()) {
      ++not_taken[certified.not_taken];
      continue;
    }
    out << line_of(certified) << "\n";
    for (const std::string& line : weight_lines(certified.proof.weights)) out << "  weights of " << line << std::endl;
    ++counts[certified.proof.answer];
  }
  if (counts.empty())
    throw InputError("prove: none of these cases has a step to compare; the first, " + all.front().c.id + ": " +
                     all.front().not_taken);
  out << "\n";
  const std::map<StepAnswer, const char*> words = {
      {StepAnswer::Same, "proven"}, {StepAnswer::Differs, "no"}, {StepAnswer::Undecided, "undecided"}};
  for (const auto& [answer, count] : counts) out << words.at(answer) << " " << count << "\n";
  for (const auto& [why, count] : not_taken) out << "not taken " << count << ": " << why << "\n";
  if (!options.certificate.empty()) {
    write_certificate(options, all);
    out << "certificate: " << options.certificate.string() << "\n";
  }
  return counts.size() == 1 && counts.contains(StepAnswer::Same) ? 0 : 1;
}

}  // namespace plumbline::proof
