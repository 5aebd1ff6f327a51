// Parsed once for plumbline, as torch.hh is for libplumbline.
#include <CLI/CLI.hpp>
