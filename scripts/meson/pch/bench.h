// Parsed once for plumbline-bench, as torch.h is for libplumbline.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
