// A number and its noun: "4 ranks", "1 rank".
#pragma once

#include <string>

namespace plumbline {

/// In the plural unless `number` is 1: "2 stages", "1 branch", "0 branches".
std::string counted(long long number, const std::string& noun);

}  // namespace plumbline
