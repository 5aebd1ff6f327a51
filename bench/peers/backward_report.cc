#include "bench/peers/backward_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/median.h"

namespace plumbline::bench {
namespace {

using Json = nlohmann::ordered_json;
using Number = std::function<double(const BackwardTimes&)>;

double full(const BackwardTimes& times) { return median(times.full); }
double input(const BackwardTimes& times) { return median(times.input); }
double weight(const BackwardTimes& times) { return median(times.weight); }
double split(const BackwardTimes& times) { return median(times.split()); }
double ratio(const BackwardTimes& times) { return times.ratio(); }

std::vector<double> of_rounds(const std::vector<BackwardRound>& rounds, size_t model, const Number& number) {
  std::vector<double> values;
  for (const BackwardRound& round : rounds) values.push_back(number(round.times.at(model)));
  return values;
}

double best(const std::vector<BackwardRound>& rounds, size_t model, const Number& number) {
  const std::vector<double> values = of_rounds(rounds, model, number);
  return *std::min_element(values.begin(), values.end());
}

/// Computed from the two sides' best rounds, the ones shown in the adjacent columns; disturbed rounds are ignored.
double over_python(const BackwardComparison& comparison, size_t model, const Number& number) {
  return best(comparison.cpp, model, number) / best(comparison.python, model, number);
}

Json side_json(const std::vector<BackwardRound>& rounds, size_t model) {
  Json json = {{"full_seconds", best(rounds, model, full)},
               {"input_seconds", best(rounds, model, input)},
               {"weight_seconds", best(rounds, model, weight)},
               {"split_seconds", best(rounds, model, split)},
               {"split_over_full", median(of_rounds(rounds, model, ratio))},
               {"rounds", Json::array()}};
  for (const BackwardRound& round : rounds) {
    const BackwardTimes& times = round.times.at(model);
    const std::vector<double> splits = times.split();
    json["rounds"].push_back({{"pairs", times.full.size()},
                              {"full_seconds", full(times)},
                              {"input_seconds", input(times)},
                              {"weight_seconds", weight(times)},
                              {"split_seconds", split(times)},
                              {"split_over_full", ratio(times)},
                              {"full_min_seconds", *std::min_element(times.full.begin(), times.full.end())},
                              {"split_min_seconds", *std::min_element(splits.begin(), splits.end())}});
  }
  return json;
}

}  // namespace

std::string to_table(const BackwardComparison& comparison) {
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(), "%-26s %31s   %31s   %s\n%-26s %9s %9s %11s   %9s %9s %11s   %9s %9s\n", "ms",
                "C++", "Python", "C++ over Python", "model", "full", "split", "split/full", "full", "split",
                "split/full", "full", "split");
  std::string text = line.data();
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    std::snprintf(line.data(), line.size(), "%-26s", to_string(comparison.models[i]).c_str());
    text += line.data();
    for (const std::vector<BackwardRound>* rounds : {&comparison.cpp, &comparison.python}) {
      std::snprintf(line.data(), line.size(), " %9.3f %9.3f %11.3f  ", 1e3 * best(*rounds, i, full),
                    1e3 * best(*rounds, i, split), median(of_rounds(*rounds, i, ratio)));
      text += line.data();
    }
    std::snprintf(line.data(), line.size(), " %9.3f %9.3f\n", over_python(comparison, i, full),
                  over_python(comparison, i, split));
    text += line.data();
  }
  return text;
}

std::string to_json(const BackwardComparison& comparison) {
  Json json = {{"threads", comparison.threads},
               {"torch", {{"cpp", comparison.cpp.at(0).torch}, {"python", comparison.python.at(0).torch}}},
               {"models", Json::array()}};
  for (size_t i = 0; i < comparison.models.size(); ++i)
    json["models"].push_back({{"model", to_string(comparison.models[i])},
                              {"cpp", side_json(comparison.cpp, i)},
                              {"python", side_json(comparison.python, i)},
                              {"full_over_python", over_python(comparison, i, full)},
                              {"split_over_python", over_python(comparison, i, split)}});
  return json.dump(1) + "\n";
}

}  // namespace plumbline::bench
