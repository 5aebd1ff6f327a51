#include "conformance/proof/blame.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace plumbline::proof {
namespace {

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

bool is_leaf(const Term& term) { return term.operands.empty(); }

/// A leaf's attributes without its type and digest.
std::string leaf_name(const Term& leaf) {
  std::string name = leaf.attributes.substr(0, leaf.attributes.rfind(' '));
  if (leaf.op != "constant") name = name.substr(0, name.rfind(' '));
  return name;
}

/// "micro-batch 2", where the unsplit run computes the term for one.
std::string microbatch_of(const TwoRuns& runs, const TermId& id) {
  const Place place = runs.expected.first(id);
  return place.microbatch < 0 ? "" : "micro-batch " + std::to_string(place.microbatch);
}

bool is_sum(const Term& term) { return term.op == "aten::add.Tensor" && term.operands.size() == 2; }

/// The addends of nested additions, from left to right.
std::vector<TermId> addends(const Terms& terms, const TermId& sum) {
  std::vector<TermId> found, open = {sum};
  while (!open.empty()) {
    const TermId id = open.back();
    open.pop_back();
    const Term term = terms.at(id);
    if (is_sum(term))
      open.insert(open.end(), {term.operands[1], term.operands[0]});
    else
      found.push_back(id);
  }
  return found;
}

/// What is in `all` more often than in `others`.
std::vector<TermId> surplus(const std::vector<TermId>& all, const std::vector<TermId>& others) {
  std::map<TermId, int> count;
  for (const TermId& id : others) ++count[id];
  std::vector<TermId> rest;
  for (const TermId& id : all)
    if (count[id]-- <= 0) rest.push_back(id);
  return rest;
}

class Walk {
 public:
  explicit Walk(const TwoRuns& runs) : runs_(runs) {}

  std::string run(TermId expected, TermId found) {
    for (int depth = 0; depth < 100000; ++depth) {
      const Term right = term(expected), wrong = term(found);
      remember(found);
      if (is_sum(right) || is_sum(wrong)) {
        const std::vector<TermId> wanted = addends(runs_.terms, expected), got = addends(runs_.terms, found);
        const std::vector<TermId> missing = surplus(wanted, got), more = surplus(got, wanted);
        if (missing.empty() && more.empty()) return here() + "the same " + count(got) + " are added in another order";
        if (missing.empty()) return here() + "added too often: " + describe(runs_, more.front());
        if (more.empty()) return here() + "left out of a sum: " + describe(runs_, missing.front());
        if (is_sum(right) && is_sum(wrong)) {
          expected = missing.front();
          found = more.front();
          continue;
        }
      }
      if (right.op != wrong.op || right.operands.size() != wrong.operands.size() || is_leaf(right))
        return here() + contrast(expected, found) + use_;
      const auto part = std::ranges::mismatch(right.operands, wrong.operands);
      if (part.in1 == right.operands.end()) {
        if (right.op == "elements") return here() + contrast(expected, found) + use_;
        return here() + right.op + " was given other arguments: expected " + right.attributes + ", found " +
               wrong.attributes;
      }
      if (right.op != "elements")
        use_ = ", as operand " + std::to_string(part.in1 - right.operands.begin()) + " of " + right.op;
      expected = *part.in1;
      found = *part.in2;
    }
    return here() + "the terms differ";
  }

 private:
  Term term(const TermId& id) const { return runs_.terms.at(id); }

  std::string contrast(const TermId& expected, const TermId& found) const {
    const std::string right = describe(runs_, expected), wrong = describe(runs_, found);
    if (right != wrong) return "expected " + right + ", found " + wrong;
    const bool drawn = term(expected).attributes.find(" random=") != std::string::npos;
    return right + (drawn ? " drew other random numbers" : " has other content");
  }
  static std::string count(const std::vector<TermId>& addends) { return std::to_string(addends.size()) + " addends"; }

  /// The deepest place of the engine's run on the way down.
  void remember(const TermId& found) {
    const Place place = runs_.found.first(found);
    if (place.stage >= 0) place_ = place;
  }
  std::string here() const {
    const std::string text = to_string(place_);
    return text.empty() ? "" : text + ": ";
  }

  const TwoRuns& runs_;
  Place place_;
  std::string use_;
};

}  // namespace

std::string describe(const TwoRuns& runs, const TermId& id) {
  const Term term = runs.terms.at(id);
  if (term.op == "constant") return "bytes that no operator made (" + first_word(term.attributes) + ")";
  if (term.op == "fill") return "the number " + first_word(term.attributes);
  if (term.op.starts_with("aten::") && is_leaf(term)) return term.op;
  if (is_leaf(term)) return term.op + (term.attributes.empty() ? "" : " " + leaf_name(term));
  if (term.op == "elements") {
    const size_t from = term.attributes.find(" from "), end = term.attributes.rfind(' ');
    const std::string of = describe(runs, term.operands[0]);
    if (from == std::string::npos) return of;
    return "elements" + term.attributes.substr(from, end - from).substr(5) + " of " + of;
  }
  const std::string microbatch = microbatch_of(runs, id);
  const Place found = runs.found.first(id);
  if (!microbatch.empty()) return term.op + " of " + microbatch;
  return term.op + (found.stage < 0 ? "" : " of " + to_string(found));
}

std::string blame(const TwoRuns& runs, const TermId& expected, const TermId& found) {
  return Walk(runs).run(expected, found);
}

}  // namespace plumbline::proof
