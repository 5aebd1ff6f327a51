// plumbline report: one page of several result folders.
#include <algorithm>
#include <iostream>
#include <memory>

#include "conformance/cli/commands.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/report/page/page.h"
#include "conformance/report/read_json.h"
#include "runtime/io/write_file.h"

namespace plumbline::cli {
namespace {

struct ReportCommand {
  std::vector<std::filesystem::path> folders;
  std::filesystem::path out;
};

int report(const ReportCommand& options) {
  std::vector<conformance::PageReport> reports;
  for (const std::filesystem::path& folder : options.folders) {
    reports.push_back({conformance::page_label(folder),
                       conformance::read_report_json(conformance::ReportFolder(folder).report()),
                       std::filesystem::proximate(folder, std::filesystem::absolute(options.out).parent_path())});
    const std::string label = reports.back().label;
    const auto same = std::count_if(reports.begin(), reports.end(),
                                    [&](const conformance::PageReport& r) { return r.label == label; });
    if (same > 1) reports.back().label = folder.string();  // two folders of the same name
  }
  write_file(options.out, conformance::report_page(reports));
  std::cout << options.out.string() << '\n';
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ReportCommand>();
  CLI::App* command = app.add_subcommand(
      "report",
      "Show the reports of several runs side by side on one page: one HTML file that needs no network and no other\n"
      "file.");
  command->add_option("DIR", options->folders, "Folders of `plumbline run --report DIR`; one or more")->required();
  command->add_option("-o,--output", options->out, "The page")->required()->type_name("F.html");
  command->callback([=, &chosen] { chosen = [options] { return report(*options); }; });
}

}  // namespace plumbline::cli
