// Parsed once for plumbline-bench, as torch.hh is for libplumbline.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
