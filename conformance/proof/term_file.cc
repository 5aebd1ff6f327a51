#include "conformance/proof/term_file.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "conformance/proof/terms/operands_first.h"
#include "runtime/io/write_file.h"

namespace plumbline::proof {
namespace {

/// Numbers terms so that operands come first.
class Lister {
 public:
  explicit Lister(const Terms& terms) : terms_(terms) {}

  size_t number_of(const TermId& root) {
    visit_operands_first(
        terms_, root, [this](const TermId& id) { return numbers_.contains(id); },
        [this](const TermId& id, const Term& term) { add(id, term); });
    return numbers_.at(root);
  }

  nlohmann::json take_heads() { return std::move(heads_); }
  nlohmann::json take_terms() { return std::move(listed_); }

 private:
  void add(const TermId& id, const Term& term) {
    const auto [head, is_new] = head_numbers_.try_emplace({term.op, term.attributes}, heads_.size());
    if (is_new) heads_.push_back({term.op, term.attributes});
    nlohmann::json line = {head->second};
    for (const TermId& operand : term.operands) line.push_back(numbers_.at(operand));
    numbers_.emplace(id, listed_.size());
    listed_.push_back(std::move(line));
  }

  const Terms& terms_;
  std::unordered_map<TermId, size_t, TermIdHash> numbers_;
  std::map<std::pair<std::string, std::string>, size_t> head_numbers_;
  nlohmann::json heads_ = nlohmann::json::array(), listed_ = nlohmann::json::array();
};

}  // namespace

void write_terms(const std::filesystem::path& path, const conformance::RunId& run, int microbatches, const Terms& terms,
                 const ResultTerms& expected, const std::vector<RankTerms>& found) {
  Lister lister(terms);
  nlohmann::json file = {{"format", "plumbline-terms/1"},
                         {"case", run.case_id},
                         {"schedule", run.schedule},
                         {"ranks", run.ranks},
                         {"microbatches", microbatches}};
  for (const auto& [key, id] : expected) file["expected"][key].push_back(lister.number_of(id));
  for (const RankTerms& rank : found)
    for (const auto& [key, id] : rank.results) file["found"][key].push_back(lister.number_of(id));
  file["heads"] = lister.take_heads();
  file["terms"] = lister.take_terms();
  write_file(path, file.dump() + "\n");
}

}  // namespace plumbline::proof
