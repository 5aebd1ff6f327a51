#include "bench/micro/backward_times.h"

#include <array>
#include <chrono>

#include "runtime/clock.h"
#include "runtime/median.h"

namespace plumbline::bench {
namespace {

using Clock = std::chrono::steady_clock;

void measure_full(BackwardStage& stage, BackwardTimes& times) {
  stage.forward();
  const Clock::time_point begin = Clock::now();
  stage.full_backward();
  times.full.push_back(seconds_since(begin));
}

void measure_halves(BackwardStage& stage, BackwardTimes& times) {
  stage.forward();
  const Clock::time_point begin = Clock::now();
  stage.input_backward();
  const Clock::time_point middle = Clock::now();
  stage.weight_backward();
  times.weight.push_back(seconds_since(middle));
  times.input.push_back(std::chrono::duration<double>(middle - begin).count());
}

}  // namespace

std::vector<double> BackwardTimes::split() const {
  std::vector<double> seconds;
  for (size_t i = 0; i < input.size(); ++i) seconds.push_back(input[i] + weight[i]);
  return seconds;
}

double BackwardTimes::ratio() const {
  std::vector<double> ratios = split();
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= full[i];
  return median(ratios);
}

void measure_pair(BackwardStage& stage, BackwardTimes& times) {
  const bool full_first = times.full.size() % 2 == 0;
  for (const auto measure :
       full_first ? std::array{measure_full, measure_halves} : std::array{measure_halves, measure_full})
    measure(stage, times);
}

}  // namespace plumbline::bench
