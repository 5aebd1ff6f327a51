#include "runtime/capture/meta/shape_rules.h"

#include <map>
#include <mutex>

#include "runtime/error.h"

namespace plumbline::capture {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const ShapeRule>> rules;

  Table() {
    for (detail::NamedShapeRule& builtin : detail::builtin_shape_rules())
      rules.emplace(builtin.op, std::make_shared<const ShapeRule>(std::move(builtin.rule)));
  }
};

Table& table() {
  static Table table;
  return table;
}

}  // namespace

void add_shape_rule(const std::string& op, ShapeRule rule) {
  const size_t colons = op.find("::");
  if (colons == 0 || colons == std::string::npos || colons + 2 == op.size())
    throw InputError("shape rule: '" + op + "' is no operator's name; one looks like aten::where.self");
  if (!rule) throw InputError("shape rule: the rule of '" + op + "' is empty");
  const std::lock_guard<std::mutex> lock(table().mutex);
  table().rules.insert_or_assign(op, std::make_shared<const ShapeRule>(std::move(rule)));
}

std::shared_ptr<const ShapeRule> find_shape_rule(const std::string& op) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  const auto it = table().rules.find(op);
  return it == table().rules.end() ? nullptr : it->second;
}

}  // namespace plumbline::capture
