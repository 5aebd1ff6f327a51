#include "conformance/corpus/corpus.h"

#include <algorithm>
#include <span>
#include <utility>

#include "conformance/corpus/case_file.h"
#include "conformance/corpus/features.h"
#include "conformance/corpus/smoke.h"
#include "runtime/error.h"
#include "runtime/io/tensor_file.h"
#include "runtime/text/join.h"
#include "runtime/text/near_names.h"
#include "runtime/text/patterns.h"

namespace plumbline::conformance {

// Names and texts of the files that the program holds, in the order of the lists in meson.build.
extern const std::span<const std::pair<std::string_view, std::string_view>> embedded_files;

namespace {

CaseFiles embedded() {
  CaseFiles files;
  for (const auto& [name, text] : embedded_files)
    if (name.ends_with(".toml")) files.read(std::string(text), "conformance/corpus/cases/" + std::string(name));
  return files;
}

CaseFiles& all_files() {
  static CaseFiles files = embedded();
  return files;
}

std::vector<std::string> ids_of(const std::vector<reference::Case>& cases) {
  std::vector<std::string> ids;
  for (const reference::Case& c : cases) ids.push_back(c.id);
  return ids;
}

}  // namespace

const std::vector<reference::Case>& corpus() { return all_files().cases(); }

std::vector<CaseText> read_case_texts(const std::filesystem::path& folder) {
  std::vector<CaseText> texts;
  if (folder.empty()) return texts;
  for (const std::filesystem::path& file : case_files(folder)) texts.push_back({file.string(), read_file(file)});
  return texts;
}

void add_cases(std::span<const CaseText> files) {
  for (const CaseText& file : files) all_files().read(file.text, file.name);
}

void add_cases(const std::filesystem::path& folder) { add_cases(read_case_texts(folder)); }

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"cases", "core", "nightly", "ranks", "smoke"};
    for (const Feature& feature : features()) all.push_back(feature.name);
    return all;
  }();
  return names;
}

std::vector<reference::Case> profile(std::string_view name) {
  if (name == "cases" || name == "core" || name == "nightly" || name == "ranks") return corpus();
  const auto is_named = [&](const Feature& feature) { return feature.name == name; };
  const bool is_feature = std::ranges::any_of(features(), is_named);
  if (name != "smoke" && !is_feature)
    throw InputError("profile: no profile is named '" + std::string(name) + "'; nearest: " +
                     join(near_names(profile_names(), name)) + " (`plumbline list --profiles` has all)");
  std::vector<reference::Case> cases;
  for (const reference::Case& c : corpus())
    if (is_feature ? has_feature(c, name) : is_smoke(c.id, "gpipe")) cases.push_back(c);
  return cases;
}

std::vector<reference::Case> select(const std::vector<reference::Case>& cases, const std::string& patterns) {
  const std::vector<std::string> ids = ids_of(cases);
  const std::vector<std::string> chosen = matching(ids, split_at_commas(patterns), [&](const std::string& pattern) {
    return "case: no case matches '" + pattern + "'; nearest: " + join(near_names(ids, pattern));
  });
  std::vector<reference::Case> selected;
  std::ranges::copy_if(cases, std::back_inserter(selected),
                       [&](const reference::Case& c) { return std::ranges::find(chosen, c.id) != chosen.end(); });
  return selected;
}

const reference::Case& find_case(const std::string& id) {
  for (const reference::Case& c : corpus())
    if (c.id == id) return c;
  throw InputError("case: no case is named '" + id + "'; nearest: " + join(near_names(ids_of(corpus()), id)));
}

reference::Case with_microbatches(reference::Case c, int microbatches, std::string& note) {
  if (microbatches == 0 || microbatches == c.microbatches) return c;
  c.microbatches = microbatches;
  const bool power_of_two = (microbatches & (microbatches - 1)) == 0;
  if (c.truth == reference::Truth::Exact && !power_of_two) {
    c.truth = reference::Truth::SameOrder;
    note = "judged as same-order: dividing by " + std::to_string(microbatches) + " micro-batches is not exact";
  }
  return c;
}

}  // namespace plumbline::conformance
