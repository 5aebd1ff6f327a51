// Parsed once for unit_core and cli_test, like torch.hh for libplumbline.
#include <gtest/gtest.h>
