// Parsed once for plumbline-bench, like torch.hh for libplumbline.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
