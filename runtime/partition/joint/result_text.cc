#include "runtime/partition/joint/result_text.h"

#include "runtime/text/join.h"

namespace plumbline::partition {

std::string_view dtype_word(const JointResult& out) {
  if (out.kind == JointResult::Kind::Tensor) return types::name_of(out.dtype);
  if (out.kind != JointResult::Kind::Scalar) return "";
  if (out.dtype == types::Dtype::Bool) return "bool";
  return out.dtype == types::Dtype::Float64 ? "float" : "int";
}

std::string result_text(const JointResult& out) {
  std::vector<std::string> parts;
  switch (out.kind) {
    case JointResult::Kind::None:
      return "nothing";
    case JointResult::Kind::Scalar:
      return std::string(dtype_word(out)) + (out.scalar.expression.empty() ? "" : " " + out.scalar.expression);
    case JointResult::Kind::Tuple:
      for (const JointResult& item : out.items) parts.push_back(result_text(item));
      return "(" + join(parts) + ")";
    case JointResult::Kind::Tensor:
      for (const Extent& size : out.shape)
        parts.push_back((size.expression.empty() ? "" : size.expression + "=") + std::to_string(size.value));
      return std::string(dtype_word(out)) + "[" + join(parts) + "]";
  }
  return "";
}

}  // namespace plumbline::partition
