#include "bench/cli/show_gaps.h"

#include <cstdio>

#include "bench/gaps/gaps.h"
#include "runtime/io/write_file.h"

namespace plumbline::bench {

void show_gaps(const schedule::Trace& step, const std::string& title, const GapFiles& files) {
  const Bubble bubble = explain(step);
  std::fputs(("\n" + bubble_text(bubble, "ms")).c_str(), stdout);
  if (!files.svg.empty()) write_file(files.svg, bubble_svg(bubble, title, "ms"));
  if (!files.trace.empty()) write_file(files.trace, bubble_chrome_trace(bubble));
}

}  // namespace plumbline::bench
