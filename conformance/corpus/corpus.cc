#include "conformance/corpus/corpus.h"

#include <fnmatch.h>

#include <algorithm>

#include "conformance/corpus/cases/axes.h"
#include "conformance/corpus/features.h"
#include "runtime/error.h"
#include "runtime/text/join.h"
#include "runtime/text/near_names.h"

namespace plumbline::conformance {
namespace {

bool is_smoke(const reference::Case& c) {
  for (const char* id :
       {"exact-mlp-sum", "exact-tied", "exact-skip", "exact-late-input", "exact-shared-ends", "exact-experts",
        "exact-encoder-decoder", "exact-eval-without-target", "multi-io", "transformer-lm", "resnet-bn", "dropout"})
    if (c.id == id) return true;
  return false;
}

/// The ids nearest to the requested one.
std::string near_ids(const std::vector<reference::Case>& cases, const std::string& glob) {
  std::vector<std::string> ids;
  for (const reference::Case& c : cases) ids.push_back(c.id);
  return join(near_names(ids, glob));
}

}  // namespace

const std::vector<reference::Case>& corpus() {
  static const std::vector<reference::Case> cases = [] {
    std::vector<reference::Case> all;
    for (auto* const axis :
         {cases::exact_basics, cases::real_basics, cases::borders, cases::presence, cases::dicts, cases::splits,
          cases::sharing, cases::gradients, cases::families, cases::microbatches, cases::losses, cases::dtypes,
          cases::randomness, cases::steps, cases::recomputation, cases::orders})
      for (reference::Case& c : axis()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"core", "nightly", "ranks", "smoke"};
    for (const Feature& feature : features()) all.push_back(feature.name);
    return all;
  }();
  return names;
}

std::vector<reference::Case> profile(std::string_view name) {
  if (name == "core" || name == "nightly" || name == "ranks") return corpus();
  const auto is_named = [&](const Feature& feature) { return feature.name == name; };
  const bool is_feature = std::ranges::any_of(features(), is_named);
  if (name != "smoke" && !is_feature)
    throw InputError("profile: no profile is named '" + std::string(name) + "'; expected one of " +
                     join(profile_names()));
  std::vector<reference::Case> cases;
  for (const reference::Case& c : corpus())
    if (is_feature ? has_feature(c, name) : is_smoke(c)) cases.push_back(c);
  return cases;
}

std::vector<reference::Case> select(const std::vector<reference::Case>& cases, const std::string& glob) {
  std::vector<reference::Case> selected;
  for (const reference::Case& c : cases)
    if (fnmatch(glob.c_str(), c.id.c_str(), 0) == 0) selected.push_back(c);
  if (selected.empty()) throw InputError("case: no case matches '" + glob + "'; nearest: " + near_ids(cases, glob));
  return selected;
}

const reference::Case& find_case(const std::string& id) {
  for (const reference::Case& c : corpus())
    if (c.id == id) return c;
  throw InputError("case: no case is named '" + id + "'; nearest: " + near_ids(corpus(), id));
}

reference::Case with_microbatches(reference::Case c, int microbatches, std::string& note) {
  if (microbatches == 0 || microbatches == c.microbatches) return c;
  c.microbatches = microbatches;
  const bool power_of_two = (microbatches & (microbatches - 1)) == 0;
  if (c.truth == reference::Truth::Exact && !power_of_two) {
    c.truth = reference::Truth::SameOrder;
    note = "judged as same-order: " + std::to_string(microbatches) + " micro-batches make divisions that are not exact";
  }
  return c;
}

}  // namespace plumbline::conformance
