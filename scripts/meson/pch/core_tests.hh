// Parsed once for unit_core and cli_test, as torch.hh is for libplumbline.
#include <gtest/gtest.h>
