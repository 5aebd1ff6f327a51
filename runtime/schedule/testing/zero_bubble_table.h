// For tests: measurements and results of the zero-bubble paper (arXiv 2401.10241, section 5).
#pragma once

#include <array>
#include <string>

#include "runtime/schedule/orders/timed/durations.h"

namespace plumbline::testing {

/// Durations of actions whose backward is always in halves.
inline constexpr schedule::Durations times_of_halves(double forward, double input, double weight, double comm) {
  return {.forward = forward, .input = input, .weight = weight, .backward = {}, .comm = comm};
}

/// A row of the paper's table of bubble rates, to four decimals and by the longest rank, with the paper's profiled
/// times in ms.
struct ZeroBubbleRow {
  int ranks, microbatches;
  schedule::Durations durations;
  double one_f_one_b, zb_h1, zb_h2;
  double zb_1p, zb_2p;  ///< by the paper's scheduler, with the memory of 1F1B and with twice as much
  /// Not from the paper: zb-h2 by the makespan, from a simulator in Python.
  double zb_h2_makespan;

  std::string where() const { return std::to_string(ranks) + " x " + std::to_string(microbatches); }
};

/// Models of 1.5, 6.2, 14.6 and 28.3 billion parameters, three rows each. Beside our tests, a simulator in Python
/// reproduces inputs and figures, with the authors' own scheduler for the columns zb_1p and zb_2p.
inline constexpr auto kZeroBubbleTable = [] {
  return std::to_array<ZeroBubbleRow>({
      {8, 24, times_of_halves(18.522, 18.086, 9.337, 0.601), 0.2431, 0.1585, 0.1083, 0.1585, 0.0433, 0.1083},
      {8, 32, times_of_halves(18.513, 18.086, 9.331, 0.626), 0.1985, 0.1242, 0.0837, 0.1242, 0.0039, 0.0837},
      {8, 64, times_of_halves(18.546, 18.097, 9.321, 0.762), 0.1240, 0.0674, 0.0444, 0.0674, 0.0026, 0.0444},
      {8, 24, times_of_halves(29.718, 29.444, 19.927, 0.527), 0.2347, 0.1323, 0.0698, 0.1323, 0.0029, 0.1003},
      {8, 32, times_of_halves(29.802, 29.428, 19.530, 0.577), 0.1898, 0.1045, 0.0559, 0.1045, 0.0022, 0.0778},
      {8, 64, times_of_halves(29.935, 29.621, 19.388, 0.535), 0.1091, 0.0554, 0.0294, 0.0554, 0.0010, 0.0405},
      {16, 48, times_of_halves(11.347, 11.248, 8.132, 0.377), 0.2552, 0.1397, 0.0672, 0.1397, 0.0066, 0.1065},
      {16, 64, times_of_halves(11.307, 11.254, 8.101, 0.379), 0.2082, 0.1088, 0.0516, 0.1088, 0.0054, 0.0820},
      {16, 128, times_of_halves(11.325, 11.308, 8.109, 0.378), 0.1251, 0.0576, 0.0266, 0.0576, 0.0028, 0.0427},
      {32, 96, times_of_halves(10.419, 10.207, 7.715, 0.408), 0.2646, 0.1421, 0.0641, 0.1421, 0.0038, 0.1098},
      {32, 128, times_of_halves(10.408, 10.204, 7.703, 0.408), 0.2168, 0.1106, 0.0490, 0.1106, 0.0029, 0.0847},
      {32, 256, times_of_halves(10.402, 10.248, 7.698, 0.460), 0.1352, 0.0594, 0.0257, 0.0594, 0.0018, 0.0443},
  });
}();

}  // namespace plumbline::testing
