#include "conformance/export/portable_stage.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/export/call_arguments.h"
#include "conformance/export/opset.h"
#include "runtime/error.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/io/text.h"
#include "runtime/split/cut/boundary_names.h"

namespace plumbline::conformance {
namespace {

/// Operators whose result equals their argument if values never change.
const std::set<std::string> kIdentities = {"aten::alias",        "aten::clone",           "aten::contiguous",
                                           "aten::dropout",      "aten::feature_dropout", "aten::lift_fresh",
                                           "aten::resolve_conj", "aten::resolve_neg"};
/// Views of the same elements in the same order.
const std::set<std::string> kReshapes = {
    "aten::_unsafe_view", "aten::flatten.using_ints", "aten::reshape",       "aten::reshape_as", "aten::squeeze",
    "aten::squeeze.dim",  "aten::squeeze.dims",       "aten::unflatten.int", "aten::unsqueeze",  "aten::view",
    "aten::view_as"};
const std::set<std::string> kExpands = {"aten::broadcast_to", "aten::expand", "aten::expand_as"};
const std::set<std::string> kSplits = {"aten::chunk", "aten::split.Tensor", "aten::split.sizes",
                                       "aten::split_with_sizes", "aten::tensor_split.sections"};
const std::set<std::string> kCasts = {"aten::_to_copy", "aten::to.dtype", "aten::to.dtype_layout", "aten::to.other",
                                      "aten::type_as"};
const std::map<std::string, double> kFilled = {
    {"aten::ones", 1}, {"aten::ones_like", 1}, {"aten::zeros", 0}, {"aten::zeros_like", 0}};
/// Random numbers that depend only on the shape of an argument.
const std::set<std::string> kDrawn = {"aten::bernoulli.p", "aten::rand", "aten::rand_like", "aten::randn",
                                      "aten::randn_like"};
/// What autocast calls in the precision of its region, and what it leaves alone, of the operators that models use
/// there.
const std::set<std::string> kLowered = {"aten::bmm", "aten::linear", "aten::matmul", "aten::mm"};
const std::set<std::string> kUnaffected = {"aten::abs", "aten::add.Tensor", "aten::gelu", "aten::mul.Tensor",
                                           "aten::relu"};
const std::set<std::string> kFullReductions = {"aten::mean", "aten::sum"};

int64_t from_front(int64_t dim, size_t dims) { return dim < 0 ? dim + static_cast<int64_t>(dims) : dim; }

class Lowering {
 public:
  Lowering(const graph::Graph& graph, std::string where) : graph_(graph), where_(std::move(where)) {}

  PortableStage lower() {
    names_ = split::boundary_names(graph_);
    for (const graph::GraphInput& input : graph_.inputs) stage_.inputs.push_back({input.name, define(input.value)});
    for (const graph::Attribute& attribute : graph_.attributes) add(attribute);
    for (const graph::Node& node : graph_.nodes) {
      node_ = &node;
      if (!node.is_split()) lower(node);
    }
    node_ = nullptr;
    for (graph::ValueId v : graph_.outputs) stage_.outputs.push_back(v == graph::kNoValue ? -1 : number_of(v));
    for (const graph::Attribute& attribute : graph_.attributes) finish(attribute);
    return std::move(stage_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(where_ + ": " + what + " has no form in opset " + std::to_string(kOpset) +
                     (node_ ? ", in " + graph::to_text(graph_, *node_) : ""));
  }

  const graph::Value& known(graph::ValueId v) const { return graph_.values[v]; }

  int add_value(const graph::Value& value) {
    if (value.kind != graph::ValueKind::Tensor) refuse("a number that is read from a tensor");
    stage_.values.push_back({value.dtype, value.sizes});
    return static_cast<int>(stage_.values.size()) - 1;
  }
  int define(graph::ValueId v) { return numbers_[v] = add_value(known(v)); }

  int number_of(graph::ValueId v) const {
    if (v == graph::kNoValue) return -1;
    if (stale_.contains(v)) refuse("an in-place change visible through another view of the same memory");
    return numbers_.at(v);
  }

  void add(const graph::Attribute& attribute) {
    const int value = attribute.value == graph::kNoValue ? -1 : define(attribute.value);
    switch (attribute.kind) {
      case graph::AttributeKind::Parameter:
        stage_.parameters.push_back({attribute.name, value});
        break;
      case graph::AttributeKind::Buffer:
        stage_.buffers.push_back({attribute.name, value});
        break;
      case graph::AttributeKind::Constant:
        if (value >= 0) stage_.constants.emplace_back(value, attribute.tensor);
        break;
    }
    if (value >= 0) first_numbers_[attribute.value] = value;
  }

  void finish(const graph::Attribute& attribute) {
    if (attribute.value == graph::kNoValue) return;
    if (stale_.contains(attribute.value)) refuse("a change of '" + attribute.name + "' through another view");
    const int now = numbers_.at(attribute.value);
    if (now == first_numbers_.at(attribute.value)) return;
    if (attribute.kind != graph::AttributeKind::Buffer) refuse("a change in place of '" + attribute.name + "'");
    stage_.buffer_updates.push_back({attribute.name, now});
  }

  void emit(const std::string& op, Json arguments, const std::vector<int>& results) {
    PLUMBLINE_CHECK(find_in_opset(op) != nullptr, "export: " + op + " is not in the opset");
    stage_.nodes.push_back({op, std::move(arguments), results});
  }

  /// The argument of that name, which must be a tensor.
  graph::ValueId tensor(const char* name) const {
    const size_t i = argument_index(*node_, name);
    return node_->arguments[i].values.at(0);
  }

  /// Under no_grad a result is detached from its arguments.
  int cut_off(int value, bool depends) {
    if (node_->grad_enabled || !depends) return value;
    const PortableValue like = stage_.values[value];
    stage_.values.push_back(like);
    const int detached = static_cast<int>(stage_.values.size()) - 1;
    emit("aten::detach", {{"self", reference(value)}}, {detached});
    return detached;
  }

  void give(graph::ValueId result, int value) {
    bool depends = false;
    graph::for_each_use(*node_, [&](graph::ValueId v) { depends = depends || known(v).requires_grad; });
    numbers_[result] =
        cut_off(value, depends && (at::isFloatingType(known(result).dtype) || at::isComplexType(known(result).dtype)));
  }

  void one(const std::string& op, Json arguments) {
    const graph::ValueId result = node_->results.at(0).values.at(0);
    const int value = add_value(known(result));
    emit(op, std::move(arguments), {value});
    give(result, value);
  }

  Json self() const { return reference(number_of(node_->arguments.at(0).values.at(0))); }
  graph::ValueId self_value() const { return node_->arguments.at(0).values.at(0); }

  void lower(const graph::Node& node) {
    if (!node.branches.empty()) refuse("a condition");
    std::vector<graph::ValueId> changed;
    graph::for_each_mutation(node, [&](graph::ValueId v) { changed.push_back(v); });
    const std::string name = functional_name(node);
    if (draws_random_numbers(node)) {
      lower_random(name);
    } else if (name == "aten::batch_norm") {
      lower_batch_norm(changed);
      return;
    } else if (kIdentities.contains(name)) {
      give(node.results.at(0).values.at(0), number_of(self_value()));
    } else if (kReshapes.contains(name)) {
      one("aten::reshape", {{"self", self()}, {"shape", known(result()).sizes}});
    } else if (kExpands.contains(name)) {
      one("aten::expand", {{"self", self()}, {"size", known(result()).sizes}});
    } else if (kCasts.contains(name)) {
      one("aten::to.dtype", {{"self", self()}, {"dtype", dtype_json(known(result()).dtype)}});
    } else if (kSplits.contains(name)) {
      lower_split();
    } else if (kFullReductions.contains(name)) {
      lower_full_reduction(name);
    } else if (kFilled.contains(name)) {
      one("aten::full", {{"size", known(result()).sizes},
                         {"fill_value", kFilled.at(name)},
                         {"dtype", dtype_json(known(result()).dtype)}});
    } else if (name == "aten::full") {
      // Without a dtype argument, the dtype depends on the number and on the default dtype.
      Json arguments = arguments_of(*find_in_opset(name));
      arguments["dtype"] = dtype_json(known(result()).dtype);
      one(name, std::move(arguments));
    } else if (name == "aten::select.int") {
      const int64_t dim = self_dim("dim"), index = integer(node, "index");
      one(name, {{"self", self()}, {"dim", dim}, {"index", index < 0 ? index + self_size(dim) : index}});
    } else if (name == "aten::slice.Tensor" || name == "aten::narrow") {
      lower_slice(name);
    } else if (name == "aten::pixel_shuffle" || name == "aten::pixel_unshuffle") {
      lower_pixels(name == "aten::pixel_shuffle");
    } else if (name == "aten::t" || name == "aten::transpose.int" || name == "aten::permute") {
      lower_permutation(name);
    } else {
      lower_plain(name);
    }
    for (graph::ValueId v : changed) change(v);
  }

  graph::ValueId result() const { return node_->results.at(0).values.at(0); }

  void lower_random(const std::string& name) {
    if (kDrawn.contains(name)) {
      stage_.masks.push_back({names_.at(result()), define(result())});
      return;
    }
    if (name != "aten::dropout") refuse("random numbers of " + name);
    const graph::ValueId x = self_value();
    stage_.masks.push_back({names_.at(result()), add_value(known(x))});
    one("aten::mul.Tensor", {{"self", self()}, {"other", reference(stage_.masks.back().value)}});
  }

  int64_t self_dim(const char* name) const {
    return from_front(integer(*node_, name), known(self_value()).sizes.size());
  }
  int64_t self_size(int64_t dim) const { return known(self_value()).sizes.at(dim); }

  void lower_slice(const std::string& name) {
    const int64_t dim = self_dim("dim"), size = self_size(dim);
    const auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, int64_t{0}, size); };
    int64_t start = 0, end = size, step = 1;
    if (name == "aten::narrow") {
      start = bound(integer(*node_, "start"));
      end = start + integer(*node_, "length");
    } else {
      const auto given = [&](const char* argument, int64_t otherwise) {
        const c10::IValue& constant = node_->arguments[argument_index(*node_, argument)].constant;
        return constant.isNone() ? otherwise : constant.toInt();
      };
      start = bound(given("start", 0));
      end = std::max(start, bound(given("end", size)));
      step = given("step", 1);
    }
    one("aten::slice.Tensor", {{"self", self()}, {"dim", dim}, {"start", start}, {"end", end}, {"step", step}});
  }

  /// Moves channels into the pixels of r x r blocks, or back.
  void lower_pixels(bool from_channels) {
    const int64_t r = integer(*node_, from_channels ? "upscale_factor" : "downscale_factor");
    const std::vector<int64_t>& in = known(self_value()).sizes;
    if (in.size() != 4) refuse("an image of other than four dimensions");
    const std::vector<int64_t>& out = known(result()).sizes;
    const std::vector<int64_t> parts = from_channels ? std::vector{in[0], out[1], r, r, in[2], in[3]}
                                                     : std::vector{in[0], in[1], out[2], r, out[3], r};
    const std::vector<int64_t> order =
        from_channels ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 1, 3, 5, 2, 4};
    const int split = add_like(parts), turned = add_like(reordered(parts, order));
    emit("aten::reshape", {{"self", self()}, {"shape", parts}}, {split});
    emit("aten::permute", {{"self", reference(split)}, {"dims", order}}, {turned});
    one("aten::reshape", {{"self", reference(turned)}, {"shape", out}});
  }

  static std::vector<int64_t> reordered(const std::vector<int64_t>& sizes, const std::vector<int64_t>& order) {
    std::vector<int64_t> answer;
    for (int64_t dim : order) answer.push_back(sizes[dim]);
    return answer;
  }

  /// A value of the dtype of the node's first argument.
  int add_like(std::vector<int64_t> shape) {
    stage_.values.push_back({known(self_value()).dtype, std::move(shape)});
    return static_cast<int>(stage_.values.size()) - 1;
  }

  void lower_permutation(const std::string& name) {
    const size_t dims = known(self_value()).sizes.size();
    std::vector<int64_t> order(dims);
    for (size_t i = 0; i < dims; ++i) order[i] = static_cast<int64_t>(i);
    if (name == "aten::permute") {
      const std::vector<int64_t> asked = integers(*node_, "dims");
      for (size_t i = 0; i < dims; ++i) order[i] = from_front(asked[i], dims);
    } else if (name == "aten::transpose.int") {
      std::swap(order.at(from_front(integer(*node_, "dim0"), dims)),
                order.at(from_front(integer(*node_, "dim1"), dims)));
    } else if (dims == 2) {
      std::swap(order[0], order[1]);
    }
    one("aten::permute", {{"self", self()}, {"dims", order}});
  }

  void lower_split() {
    const size_t dims = known(self_value()).sizes.size();
    const int64_t dim = from_front(integer(*node_, "dim"), dims);
    std::vector<int64_t> sizes;
    std::vector<int> values;
    for (graph::ValueId part : node_->results.at(0).values) {
      sizes.push_back(known(part).sizes.at(dim));
      values.push_back(add_value(known(part)));
    }
    emit("aten::split_with_sizes", {{"self", self()}, {"split_sizes", sizes}, {"dim", dim}}, values);
    for (size_t i = 0; i < values.size(); ++i) give(node_->results[0].values[i], values[i]);
  }

  void lower_full_reduction(const std::string& name) {
    std::vector<int64_t> dims(known(self_value()).sizes.size());
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
    refuse_dtype_argument();
    one(name == "aten::mean" ? "aten::mean.dim" : "aten::sum.dim_IntList",
        {{"self", self()}, {"dim", dims}, {"keepdim", false}});
  }

  void refuse_dtype_argument() const {
    const size_t i = argument_index(*node_, "dtype");
    if (!node_->arguments[i].constant.isNone()) refuse("a sum in another element type");
  }

  /// In training, the new running statistics are additional results.
  void lower_batch_norm(const std::vector<graph::ValueId>& statistics) {
    const graph::Value& y = known(result());
    std::vector<int> values = {add_value(y)};
    for (graph::ValueId v : statistics) values.push_back(add_value(known(v)));
    emit("aten::batch_norm", arguments_of(*find_in_opset("aten::batch_norm")), values);
    give(result(), values[0]);
    for (size_t i = 0; i < statistics.size(); ++i) change(statistics[i], values[i + 1]);
  }

  const graph::AutocastRegion* autocast() const {
    const graph::AutocastRegion* region = node_->autocast < 0 ? nullptr : &graph_.autocast[node_->autocast];
    return region && region->enabled ? region : nullptr;
  }

  /// The argument of an operator that autocast calls in the precision of `region`: cast, as it does it, unless float64.
  int in_precision_of(const graph::AutocastRegion& region, graph::ValueId v) {
    const int number = number_of(v);
    if (number < 0 || !at::isFloatingType(known(v).dtype) || known(v).dtype == at::kDouble ||
        known(v).dtype == region.dtype)
      return number;
    stage_.values.push_back({region.dtype, known(v).sizes});
    const int cast = static_cast<int>(stage_.values.size()) - 1;
    emit("aten::to.dtype", {{"self", reference(number)}, {"dtype", dtype_json(region.dtype)}}, {cast});
    return cast;
  }

  Json arguments_of(const OpsetEntry& entry) {
    const graph::AutocastRegion* region = autocast();
    const std::string name(entry.name);
    const bool lowers = region != nullptr && kLowered.contains(name);
    if (region != nullptr && !lowers && !kUnaffected.contains(name)) refuse(name + " under autocast");
    std::string unsupported;
    Json arguments = call_arguments(
        *node_, entry.arguments, [&](graph::ValueId v) { return lowers ? in_precision_of(*region, v) : number_of(v); },
        unsupported);
    if (!unsupported.empty()) refuse("the argument '" + unsupported + "'");
    return arguments;
  }

  void lower_plain(std::string name) {
    // The opset accepts a number in place of a tensor.
    const size_t scalar = name.rfind(".Scalar");
    if (scalar != std::string::npos && !find_in_opset(name)) name = name.substr(0, scalar) + ".Tensor";
    const OpsetEntry* entry = find_in_opset(name);
    if (!entry) refuse(name);
    Json arguments = arguments_of(*entry);
    if (arguments.contains("dim")) normalise_dims(arguments["dim"], name == "aten::stack" ? 1 : 0);
    std::vector<int> values;
    for (const graph::Result& made : node_->results)
      for (graph::ValueId v : made.values) values.push_back(add_value(known(v)));
    emit(name, std::move(arguments), values);
    size_t i = 0;
    for (const graph::Result& made : node_->results)
      for (graph::ValueId v : made.values) give(v, values[i++]);
  }

  /// Dimensions count from the front.
  void normalise_dims(Json& dims, size_t added) const {
    const graph::ValueId like = node_->arguments.at(0).values.at(0);
    const size_t count = known(like).sizes.size() + added;
    if (dims.is_number_integer()) dims = from_front(dims.get<int64_t>(), count);
    if (dims.is_array())
      for (Json& dim : dims) dim = from_front(dim.get<int64_t>(), count);
  }

  /// The memory of `v` now contains the result of the call.
  void change(graph::ValueId v) {
    const PortableValue& old = stage_.values[numbers_.at(v)];
    const PortableValue& now = stage_.values[numbers_.at(result())];
    if (old.dtype != now.dtype || old.shape != now.shape) refuse("an in-place change of element type or shape");
    change(v, numbers_.at(result()));
  }

  /// Values that are the same whole tensor change with `v`; other views of the memory become unusable.
  void change(graph::ValueId v, int after) {
    const int before = numbers_.at(v);
    const int32_t memory = known(v).storage;
    for (auto& [other, number] : numbers_) {
      if (other == v || memory < 0 || known(other).storage != memory || number == after) continue;
      if (number == before)
        number = after;
      else
        stale_.insert(other);
    }
    numbers_[v] = after;
  }

  const graph::Graph& graph_;
  std::string where_;
  const graph::Node* node_ = nullptr;
  PortableStage stage_;
  std::vector<std::string> names_;
  std::map<graph::ValueId, int> numbers_, first_numbers_;
  std::set<graph::ValueId> stale_;
};

}  // namespace

PortableStage portable_stage(const graph::Graph& graph, const std::string& where) {
  return Lowering(graph, where).lower();
}

graph::Graph with_masks_as_outputs(const graph::Graph& graph) {
  graph::Graph drawing = graph;
  drawing.nodes.clear();
  drawing.module_calls.clear();
  const auto call = [](const char* name, const char* overload, std::vector<graph::Argument> arguments,
                       graph::ValueId result) {
    graph::Node node;
    node.op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
    node.arguments = std::move(arguments);
    node.arguments.resize(node.op->schema().arguments().size());
    node.results = {graph::Result{false, {result}}};
    return node;
  };
  const auto value = [](graph::ValueId v) { return graph::Argument{graph::Argument::Kind::Value, {}, {v}}; };
  for (const graph::Node& node : graph.nodes) {
    if (node.is_split() || !draws_random_numbers(node)) {
      drawing.nodes.push_back(node);
      continue;
    }
    if (functional_name(node) != "aten::dropout") {
      drawing.nodes.push_back(node);
      const graph::ValueId drawn = node.results.at(0).values.at(0);
      drawing.outputs.push_back(drawing.add_value(graph.values[drawn]));
      drawing.nodes.push_back(call("aten::clone", "", {value(drawn)}, drawing.outputs.back()));
      continue;
    }
    const graph::ValueId x = node.arguments.at(0).values.at(0);
    const graph::ValueId ones = drawing.add_value(graph.values[x]);
    const graph::ValueId mask = drawing.add_value(graph.values[x]);
    drawing.nodes.push_back(call("aten::ones_like", "", {value(x)}, ones));
    graph::Node draw = call("aten::dropout", "", {value(ones), node.arguments.at(1), node.arguments.at(2)}, mask);
    drawing.nodes.push_back(draw);
    const bool in_place = node.op->schema().name().ends_with("_");
    drawing.nodes.push_back(call(in_place ? "aten::mul_" : "aten::mul", "Tensor", {value(x), value(mask)},
                                 node.results.at(0).values.at(0)));
    drawing.outputs.push_back(mask);
  }
  return drawing;
}

}  // namespace plumbline::conformance
