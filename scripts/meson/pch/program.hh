// Parsed once for plumbline, like torch.hh for libplumbline.
#include <CLI/CLI.hpp>
