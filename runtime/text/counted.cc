#include "runtime/text/counted.h"

namespace plumbline {

std::string counted(long long number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

}  // namespace plumbline
