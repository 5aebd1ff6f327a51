// The table of statuses in docs/glossary.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/judge/verdict/finding.h"

namespace plumbline::conformance {
namespace {

/// The cells of the rows of the section's table.
std::vector<std::vector<std::string>> rows_of_section(std::istream& page, const std::string& section) {
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(page, line) && line != "## " + section) continue;
  while (std::getline(page, line) && !line.starts_with("## ")) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream text(line.substr(2));
    for (std::string cell; std::getline(text, cell, '|');) {
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
      cells.push_back(cell);
    }
    rows.push_back(cells);
  }
  return rows;
}

TEST(Glossary, ListsEveryStatusWithItsSign) {
  const char* docs = std::getenv("PLUMBLINE_DOCS");
  if (!docs) GTEST_SKIP() << "PLUMBLINE_DOCS is not set";
  std::ifstream page(std::string(docs) + "/glossary.md");
  const auto rows = rows_of_section(page, "Statuses");
  ASSERT_EQ(rows.size(), std::size(all_statuses));
  for (size_t i = 0; i < rows.size(); ++i) {
    const Status status = all_statuses[i];
    EXPECT_EQ(rows[i].at(0), std::string("`") + status_symbol(status) + "`");
    EXPECT_EQ(rows[i].at(1), status_headline(status));
    EXPECT_EQ(rows[i].at(3) == "yes", is_failure(status)) << status_headline(status);
  }
}

}  // namespace
}  // namespace plumbline::conformance
