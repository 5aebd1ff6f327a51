// Parsed once for plumbline, as torch.h is for libplumbline.
#include <CLI/CLI.hpp>
