// plumbline list: the cases of the corpus, and the bugs that each catches.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "conformance/cli/commands.h"
#include "conformance/cli/options/corpus_option.h"
#include "conformance/corpus/corpus.h"
#include "conformance/corpus/features.h"
#include "conformance/judge/verdict/verdict.h"
#include "reference/models/parts/identity.h"

namespace plumbline::cli {
namespace {

struct ListOptions {
  std::string profile = "core";
  std::string case_glob;
  std::filesystem::path corpus;
  bool json = false;
  bool profiles = false;
};

struct Profile {
  std::string name, what;
};

/// The profiles that combine cases, then one for each feature.
std::vector<Profile> all_profiles() {
  std::vector<Profile> all = {{"smoke", "a few cases of each kind under four schedules: half a minute"},
                              {"cases", "all cases, each at least once; every pair of a feature and a schedule"},
                              {"core", "all cases; every pair that matters, of features and schedules among them"},
                              {"nightly", "all cases under all schedules, on 2, 4 and 8 ranks, over all transports"},
                              {"ranks", "every feature and every schedule on each number of ranks from 1 to 8"}};
  for (const conformance::Feature& feature : conformance::features()) all.push_back({feature.name, feature.what});
  return all;
}

int list_profiles(bool json) {
  nlohmann::json as_json = nlohmann::json::array();
  for (const Profile& one : all_profiles()) {
    const size_t cases = conformance::profile(one.name).size();
    if (json)
      as_json.push_back({{"name", one.name}, {"what", one.what}, {"cases", cases}});
    else
      std::printf("%-18s %4zu cases  %s\n", one.name.c_str(), cases, one.what.c_str());
  }
  if (json) std::printf("%s\n", as_json.dump(2).c_str());
  return 0;
}

int list(const ListOptions& options) {
  conformance::add_cases(options.corpus);
  if (options.profiles) return list_profiles(options.json);
  const std::vector<reference::Case> cases = options.case_glob.empty()
                                                 ? conformance::profile(options.profile)
                                                 : conformance::select(conformance::corpus(), options.case_glob);
  if (options.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const reference::Case& c : cases) {
      all.push_back({{"id", c.id},
                     {"title", c.title},
                     {"why", c.why},
                     {"truth", reference::to_string(c.truth)},
                     {"model", c.model},
                     {"rows", c.rows},
                     {"microbatches", c.microbatches},
                     {"features", conformance::features_of(c)},
                     {"steps", c.steps.size()}});
      if (const auto test = models::identity_test(c))
        all.back()["identity_test"] = {{"degree", test->loss_degree}, {"values", test->values}};
    }
    std::printf("%s\n", all.dump(2).c_str());
    return 0;
  }
  size_t width = 0;
  for (const reference::Case& c : cases) width = std::max(width, c.id.size());
  const int indent = static_cast<int>(width + 12);
  for (const reference::Case& c : cases) {
    std::printf("%-*s  %-10s  %s\n%*s  catches: %s\n", static_cast<int>(width), c.id.c_str(),
                std::string(reference::to_string(c.truth)).c_str(), c.title.c_str(), indent, "", c.why.c_str());
    if (const auto test = models::identity_test(c))
      std::printf(
          "%*s  degree %d, leaves from %lld numbers: with one seed a wrong polynomial passes with probability %.3f\n",
          indent, "", test->loss_degree, static_cast<long long>(test->values),
          models::pass_bound(test->loss_degree, test->values));
  }
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = app.add_subcommand("list", "The cases of the corpus, and the bugs that each catches");
  command
      ->add_option("--profile", options->profile,
                   "core, nightly (the same cases), smoke, or a feature such as dropout's, 'random'; see --profiles")
      ->capture_default_str();
  command->add_flag("--profiles", options->profiles, "The profiles instead, with what each is for");
  command->add_option("--case", options->case_glob, "Only cases whose id matches one of these patterns (* and ?)")
      ->type_name("GLOB,...");
  add_corpus_option(*command, options->corpus);
  command->add_flag("--json", options->json, "As JSON");
  command->callback([options, &chosen] { chosen = [options] { return list(*options); }; });
}

}  // namespace plumbline::cli
