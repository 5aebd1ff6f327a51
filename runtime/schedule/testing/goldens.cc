#include "runtime/schedule/testing/goldens.h"

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/error.h"
#include "runtime/fnv1a.h"
#include "runtime/schedule/testing/goldens_path.h"

namespace plumbline::testing {
namespace {

const std::map<std::string, std::string> kNames = {{"GPipe", "gpipe"},
                                                   {"1F1B", "1f1b"},
                                                   {"Interleaved1F1B", "interleaved-1f1b"},
                                                   {"LoopedBFS", "looped-bfs"},
                                                   {"InterleavedZeroBubble", "interleaved-zero-bubble"},
                                                   {"ZBVZeroBubble", "zb-v"},
                                                   {"DualPipeV", "dualpipe-v"}};

}  // namespace

std::vector<Golden> pytorch_goldens() {
  std::ifstream file(std::string(PLUMBLINE_SCHEDULE_GOLDENS) + "/pytorch-2.15.txt");
  PLUMBLINE_CHECK(file.good(), "there are no goldens");
  std::vector<Golden> goldens;
  for (std::string line; std::getline(file, line);) {
    Golden golden;
    golden.line = line;
    std::istringstream words(line);
    std::string ranks, stages, microbatches;
    words >> golden.of_class >> ranks >> stages >> microbatches >> golden.form >> golden.hash;
    PLUMBLINE_CHECK(!golden.hash.empty(), line);
    const auto number = [](const std::string& field) { return std::stoi(field.substr(2)); };
    golden.request = {.name = kNames.at(golden.of_class),
                      .ranks = number(ranks),
                      .microbatches = number(microbatches),
                      .stages_per_rank = number(stages)};
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

std::string fnv1a(std::string_view text) {
  std::uint64_t hash = plumbline::fnv1a(text);
  std::string digits(16, '0');
  for (int n = 15; n >= 0; --n, hash >>= 4) digits[n] = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace plumbline::testing
