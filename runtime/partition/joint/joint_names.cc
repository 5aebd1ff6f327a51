#include "runtime/partition/joint/joint_names.h"

#include <array>

namespace plumbline::partition {
namespace {

/// Names of operators that Python's builtins or keywords have too; torch.fx leaves them to Python.
constexpr std::array kPython{"abs", "all", "any",   "bool", "complex", "float", "hash",  "int", "max",
                             "min", "pow", "range", "repr", "round",   "set",   "slice", "sum", "type"};

bool is_python(std::string_view name) {
  for (const std::string_view known : kPython)
    if (name == known) return true;
  return false;
}

}  // namespace

std::string JointNames::unique(std::string_view wish) {
  std::string name(wish);
  if (!is_python(wish) && taken_.insert(name).second) return name;
  int& number = last_number_[name];
  for (;;) {
    std::string numbered = name + "_" + std::to_string(++number);
    if (taken_.insert(numbered).second) return numbered;
  }
}

std::string_view name_base(std::string_view op) {
  const size_t colons = op.rfind("::");
  return colons == std::string_view::npos ? op : op.substr(colons + 2);
}

}  // namespace plumbline::partition
