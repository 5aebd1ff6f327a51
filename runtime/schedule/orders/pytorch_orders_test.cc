// Our orders against those of PyTorch 2.15, cell by cell, by the hashes that scripts/pytorch_schedules wrote down.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "runtime/schedule/csv.h"
#include "runtime/schedule/generators.h"
#include "runtime/schedule/goldens_path.h"

namespace plumbline {
namespace {

const std::map<std::string, std::string> kNames = {{"GPipe", "gpipe"},
                                                   {"1F1B", "1f1b"},
                                                   {"Interleaved1F1B", "interleaved-1f1b"},
                                                   {"LoopedBFS", "looped-bfs"},
                                                   {"InterleavedZeroBubble", "interleaved-zero-bubble"},
                                                   {"ZBVZeroBubble", "zb-v"},
                                                   {"DualPipeV", "dualpipe-v"}};

std::string fnv1a64(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string digits(16, '0');
  for (int n = 15; n >= 0; --n, hash >>= 4) digits[n] = "0123456789abcdef"[hash & 15];
  return digits;
}

TEST(PyTorchOrders, EqualCellByCell) {
  EXPECT_EQ(fnv1a64("foobar"), "85944171f73967e8") << "the hash as its authors give it";
  std::ifstream file(std::string(PLUMBLINE_SCHEDULE_GOLDENS) + "/pytorch-2.15.txt");
  std::map<std::string, int> compared;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string of_class, p, v, m, form, hash;
    words >> of_class >> p >> v >> m >> form >> hash;
    if (form != "compute") continue;
    const auto number = [](const std::string& field) { return std::stoi(field.substr(2)); };
    const Schedule schedule = make_schedule(
        {.name = kNames.at(of_class), .ranks = number(p), .microbatches = number(m), .stages_per_rank = number(v)});
    EXPECT_EQ(fnv1a64(to_csv(schedule)), hash) << line << "\n" << to_csv(schedule);
    ++compared[of_class];
  }
  int all = 0;
  for (const auto& [of_class, name] : kNames) {
    EXPECT_GE(compared[of_class], 20) << of_class;
    all += compared[of_class];
  }
  EXPECT_GE(all, 250);
}

}  // namespace
}  // namespace plumbline
