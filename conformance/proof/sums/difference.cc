#include "conformance/proof/sums/difference.h"

#include <map>
#include <set>

#include "runtime/text/join.h"

namespace plumbline::proof {
namespace {

struct Alike {
  int count = 0;
  std::set<int> stages = {};
};

std::string stages_text(const std::set<int>& stages) {
  std::vector<std::string> known;
  for (const int stage : stages)
    if (stage >= 0) known.push_back(std::to_string(stage));
  if (known.empty()) return {};
  return (known.size() == 1 ? " (stage " : " (stages ") + join(known, ", ") + ")";
}

}  // namespace

std::string sums_text(const std::vector<Difference>& differences) {
  int in_another_order = 0, other = 0;
  std::map<Rational, Alike> multiples;
  for (const Difference& difference : differences) {
    switch (difference.relation.relation) {
      case Relation::SameTerm:
        break;
      case Relation::SameSum:
        ++in_another_order;
        break;
      case Relation::Multiple: {
        Alike& alike = multiples[difference.relation.factor];
        ++alike.count;
        alike.stages.insert(difference.stage);
        break;
      }
      case Relation::AnotherSum:
        ++other;
        break;
    }
  }
  const auto all = static_cast<int>(differences.size());
  std::vector<std::string> parts;
  const auto tell = [&](int count, const std::string& one, const std::string& several) {
    if (count == 0) return;
    const std::string number = count == all && all > 1 ? "all " + std::to_string(all) : std::to_string(count);
    parts.push_back(number + (count == 1 ? " is " + one : " are " + several));
  };
  tell(in_another_order, "the expected sum in another order", "the expected sum in another order");
  for (const auto& [factor, alike] : multiples) {
    const std::string what = to_string(factor) + (denominator(factor) == 1 ? " times" : " of") + " the expected sum" +
                             stages_text(alike.stages);
    tell(alike.count, what, what);
  }
  tell(other, "another sum", "other sums");
  return join(parts, ", ");
}

}  // namespace plumbline::proof
