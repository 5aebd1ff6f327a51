// plumbline list: the cases of the corpus, and what each hunts for.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "conformance/cli/commands.h"
#include "conformance/corpus.h"
#include "conformance/verdict.h"

namespace plumbline {
namespace {

struct ListOptions {
  std::string profile = "core";
  std::string case_glob;
  bool json = false;
};

int list(const ListOptions& options) {
  const std::vector<Case> cases =
      options.case_glob.empty() ? profile(options.profile) : select(corpus(), options.case_glob);
  if (options.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Case& c : cases)
      all.push_back({{"id", c.id},
                     {"title", c.title},
                     {"why", c.why},
                     {"truth", to_string(c.truth)},
                     {"model", c.model},
                     {"rows", c.rows},
                     {"microbatches", c.microbatches},
                     {"steps", c.steps.size()}});
    std::printf("%s\n", all.dump(2).c_str());
    return 0;
  }
  size_t width = 0;
  for (const Case& c : cases) width = std::max(width, c.id.size());
  for (const Case& c : cases)
    std::printf("%-*s  %-10s  %s\n%*s  hunts: %s\n", static_cast<int>(width), c.id.c_str(),
                std::string(to_string(c.truth)).c_str(), c.title.c_str(), static_cast<int>(width + 12), "",
                c.why.c_str());
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = app.add_subcommand("list", "The cases of the corpus, and what each hunts for");
  command->add_option("--profile", options->profile, "core, nightly (the same cases), or smoke")->capture_default_str();
  command->add_option("--case", options->case_glob, "Only cases whose id matches this pattern (* and ?)");
  command->add_flag("--json", options->json, "As JSON");
  command->callback([options, &chosen] { chosen = [options] { return list(*options); }; });
}

}  // namespace plumbline
