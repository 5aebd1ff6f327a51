#include "runtime/capture/pt2/program.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "runtime/capture/pt2/archive.h"
#include "runtime/capture/pt2/graph_builder.h"
#include "runtime/capture/pt2/sample_inputs.h"
#include "runtime/capture/pt2/tree_spec.h"
#include "runtime/error.h"
#include "runtime/graph/error_text.h"
#include "runtime/io/json_place.h"
#include "runtime/text/in_quotes.h"
#include "runtime/text/one_line.h"

namespace plumbline::capture {
namespace {

using nlohmann::json;
using pt2::Binding;

constexpr int64_t kSchemaMajor = 8;
constexpr const char* kProgramEntry = "models/model.json";

class Loader {
 public:
  explicit Loader(const std::filesystem::path& path) : archive_(path) {}

  ExportedProgram load() {
    if (!archive_.has(kProgramEntry))
      archive_.refuse("no entry " + in_quotes(kProgramEntry) + "; expected an archive of torch.export.save()");
    if (archive_.has("byteorder") && archive_.read_text("byteorder") != "little")
      archive_.refuse("its tensors are not little-endian, as entry 'byteorder' says; only those can be read");
    try {
      const json model = archive_.read_json(kProgramEntry, "the program");
      read_versions(model);
      read_module(model.at("graph_module"));
    } catch (const json::exception& error) {
      archive_.refuse("entry " + in_quotes(kProgramEntry) + " is malformed: " + json_reason(error));
    } catch (const InputError& error) {
      const std::string text = error.what();
      if (text.starts_with(archive_.file())) throw;
      archive_.refuse(text);
    } catch (const std::exception& error) {
      archive_.refuse(graph::error_line(error));
    }
    return std::move(program_);
  }

 private:
  void read_versions(const json& model) {
    const json& version = model.at("schema_version");
    const auto major = pt2::whole(version.at("major"));
    program_.schema_version = std::to_string(major) + "." + std::to_string(pt2::whole(version.at("minor")));
    program_.torch_version = one_line(model.value("torch_version", ""));
    if (major != kSchemaMajor)
      archive_.refuse("written with schema version " + program_.schema_version + " (torch " + program_.torch_version +
                      "); expected version " + std::to_string(kSchemaMajor) +
                      ".x, as torch 2.11 to 2.15 write it: export the model again with one of those");
  }

  void read_module(const json& module) {
    const json& source = module.at("graph");
    const json& specs = module.at("signature").at("input_specs");
    if (specs.size() != source.at("inputs").size())
      archive_.refuse("entry " + in_quotes(kProgramEntry) + " has " + std::to_string(specs.size()) +
                      " input specs for " + std::to_string(source.at("inputs").size()) + " inputs");
    pt2::TreeSpec in_spec, out_spec;
    for (const json& call : module.at("module_call_graph")) {
      if (!call.at("fqn").get<std::string>().empty() || call.at("signature").is_null()) continue;
      in_spec = pt2::parse_tree_spec(call["signature"].at("in_spec").get<std::string>());
      out_spec = pt2::parse_tree_spec(call["signature"].at("out_spec").get<std::string>());
    }
    pt2::SampleInputs sample = read_sample_inputs(archive_, in_spec);
    program_.sample_inputs_error = sample.error;
    for (const json& spec : specs) {
      const std::string kind = pt2::tag_of(spec);
      add_input(kind, spec.begin().value(), source, sample);
    }
    pt2::GraphBuilder builder(program_.graph);
    builder.add_nodes(source, names_);
    add_outputs(module.at("signature").at("output_specs"), out_spec, builder);
    graph::verify(program_.graph);
  }

  void add_input(const std::string& kind, const json& spec, const json& source, pt2::SampleInputs& sample) {
    if (kind == "parameter") {
      add_attribute(spec, graph::AttributeKind::Parameter, spec.at("parameter_name").get<std::string>(), weights_);
    } else if (kind == "buffer") {
      const bool persistent = spec.at("persistent").get<bool>();
      add_attribute(spec, graph::AttributeKind::Buffer, spec.at("buffer_name").get<std::string>(),
                    persistent ? weights_ : constants_, persistent);
    } else if (kind == "tensor_constant") {
      add_attribute(spec, graph::AttributeKind::Constant, spec.at("tensor_constant_name").get<std::string>(),
                    constants_);
    } else if (kind == "user_input") {
      add_user_input(spec.at("arg"), source, sample);
      ++leaf_;
    } else if (kind == "constant_input") {
      const pt2::Lookup no_values = [](const std::string& name) -> pt2::Meaning {
        throw Error("a constant input names the value " + in_quotes(name) + "; expected a constant");
      };
      names_[spec.at("name").get<std::string>()] = {Binding::Kind::Constant, graph::kNoValue,
                                                    pt2::plain_meaning(spec.at("value"), no_values).constant};
      ++leaf_;
    } else {
      archive_.refuse("the program takes a " + kind + ", which is not supported; expected parameters, buffers, " +
                      "tensor constants or inputs");
    }
  }

  void add_attribute(const json& spec, graph::AttributeKind kind, const std::string& name, pt2::TensorFolder& folder,
                     bool persistent = true) {
    const at::Tensor tensor = folder.load(name);
    std::vector<graph::Attribute>& attributes = program_.graph.attributes;
    const auto [it, inserted] = attribute_of_.try_emplace(tensor.unsafeGetTensorImpl(), attributes.size());
    // One tensor under several names of one kind is tied; a parameter that is also a buffer stays two attributes.
    if (!inserted && attributes[it->second].kind == kind) {
      attributes[it->second].aliases.push_back(name);
    } else {
      it->second = attributes.size();
      attributes.push_back({kind, name, {}, persistent, tensor, graph::kNoValue});
    }
    names_[spec.at("arg").at("name").get<std::string>()] = {
        Binding::Kind::Attribute, static_cast<int32_t>(it->second), {}};
  }

  void add_user_input(const json& argument, const json& source, pt2::SampleInputs& sample) {
    const std::string kind = pt2::tag_of(argument);
    const c10::IValue* leaf = leaf_ < sample.leaves.size() ? &sample.leaves[leaf_] : nullptr;
    if (kind == "as_tensor") {
      add_tensor_input(argument["as_tensor"].at("name").get<std::string>(), source, sample);
      return;
    }
    if (kind != "as_sym_int" && kind != "as_sym_float" && kind != "as_sym_bool") {
      archive_.refuse("an input of the kind " + kind + " is not supported; expected tensors or numbers");
    }
    const auto name = argument.begin().value().at("as_name").get<std::string>();
    if (!leaf || !(leaf->isInt() || leaf->isDouble() || leaf->isBool()))
      archive_.refuse("input " + in_quotes(name) +
                      " is a symbolic number, and there is no sample input to take it from" +
                      (sample.error.empty() ? "" : " (" + sample.error + ")"));
    names_[name] = {Binding::Kind::Constant, graph::kNoValue, *leaf};
  }

  void add_tensor_input(const std::string& name, const json& source, pt2::SampleInputs& sample) {
    const json& meta = source.at("tensor_values").at(name);
    graph::Value value = pt2::value_of_meta(meta);
    const bool have =
        leaf_ < sample.leaves.size() && sample.leaves[leaf_].isTensor() && sample.leaves[leaf_].toTensor().defined();
    const json& sizes = meta.at("sizes");
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].contains("as_int")) continue;
      if (!have)
        archive_.refuse("dimension " + std::to_string(d) + " of input " + in_quotes(name) +
                        " is symbolic, and there is no sample input to take its size from" +
                        (sample.error.empty() ? "" : " (" + sample.error + ")") + "; export with static shapes");
      if (sample.leaves[leaf_].toTensor().dim() == static_cast<int64_t>(sizes.size()))
        value.sizes[d] = sample.leaves[leaf_].toTensor().size(static_cast<int64_t>(d));
    }
    if (have) {
      const at::Tensor& tensor = sample.leaves[leaf_].toTensor();
      if (tensor.scalar_type() != value.dtype || tensor.sizes() != value.sizes)
        archive_.refuse("the sample of input " + in_quotes(name) + " is " + graph::describe(tensor) +
                        ", but the program takes " + graph::describe(value.dtype, value.sizes));
      if (program_.sample_inputs.size() == program_.graph.inputs.size()) program_.sample_inputs.push_back(tensor);
    } else if (sample.error.empty()) {
      program_.sample_inputs_error = "the sample of input " + in_quotes(name) + " is not a tensor";
    }
    const graph::ValueId v = program_.graph.add_value(std::move(value));
    names_[name] = {Binding::Kind::Value, v, {}};
    program_.graph.inputs.push_back({name, v});
  }

  void add_outputs(const json& specs, const pt2::TreeSpec& out_spec, pt2::GraphBuilder& builder) {
    graph::Graph& graph = program_.graph;
    std::vector<graph::OutputTree> leaves;
    for (const json& spec : specs) {
      if (!spec.contains("user_output"))
        archive_.refuse("the program has an output of the kind " + pt2::tag_of(spec) +
                        ": it was functionalised; save what torch.export.export() returns, without "
                        "run_decompositions()");
      const json& argument = spec["user_output"].at("arg");
      const pt2::Meaning meaning =
          pt2::plain_meaning(argument, [&](const std::string& name) { return builder.resolve(names_, name); });
      graph::OutputTree leaf;
      leaf.output = static_cast<int>(graph.outputs.size());
      const bool number = meaning.is_value() && graph.values[meaning.value].kind != graph::ValueKind::Tensor;
      // A constant keeps its position, so that outputs have the same numbers as in Python.
      graph.outputs.push_back(number               ? builder.as_tensor(meaning.value)
                              : meaning.is_value() ? meaning.value
                                                   : graph::kNoValue);
      if (!meaning.is_value() && !meaning.constant.isNone()) {
        leaf.kind = graph::OutputTree::Kind::Constant;
        leaf.constant = constant_text(meaning.constant);
      }
      leaves.push_back(std::move(leaf));
    }
    program_.output_tree = pt2::output_tree(out_spec, leaves);
    if (program_.sample_inputs.size() != graph.inputs.size()) program_.sample_inputs.clear();
  }

  static std::string constant_text(const c10::IValue& constant) {
    if (constant.isBool()) return constant.toBool() ? "True" : "False";
    if (constant.isString()) return constant.toStringRef();
    if (constant.isInt()) return std::to_string(constant.toInt());
    return json(constant.toDouble()).dump();
  }

  pt2::Archive archive_;
  pt2::TensorFolder weights_{archive_, "data/weights", "model_weights_config.json"};
  pt2::TensorFolder constants_{archive_, "data/constants", "model_constants_config.json"};
  ExportedProgram program_;
  pt2::Names names_;
  std::unordered_map<const c10::TensorImpl*, size_t> attribute_of_;
  size_t leaf_ = 0;  // number of the input, constants included
};

}  // namespace

ExportedProgram read_program(const std::filesystem::path& path) { return Loader(path).load(); }

}  // namespace plumbline::capture
