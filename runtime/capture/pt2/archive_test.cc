#include "runtime/capture/pt2/archive.h"

#include <ATen/core/Tensor.h>
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>

#include "runtime/capture/pt2/program.h"
#include "runtime/capture/pt2/sample_inputs.h"
#include "runtime/capture/pt2/testing/archives.h"
#include "runtime/error.h"

namespace plumbline::capture::pt2 {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::filesystem::path write_bytes(const TemporaryFolder& folder, const std::string& bytes) {
  const std::filesystem::path path = folder / "model.pt2";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// The error of read_program for these bytes; checks that every line begins with the file.
std::string refusal_of_bytes(const TemporaryFolder& folder, const std::string& bytes) {
  const std::filesystem::path path = write_bytes(folder, bytes);
  const std::string text = refusal_of([&] { capture::read_program(path); });
  if (text == "nothing was thrown") return text;
  EXPECT_TRUE(text.starts_with(path.string() + ": ")) << text;
  return text;
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Archive, NoFileAndNoZip) {
  const TemporaryFolder folder;
  EXPECT_SAYS(refusal_of([&] { capture::read_program(folder / "absent.pt2"); }), "no such file");
  EXPECT_SAYS(refusal_of_bytes(folder, "not a zip"), "not a .pt2 archive");
  EXPECT_SAYS(refusal_of_bytes(folder, ""), "not a .pt2 archive");
}

TEST(Archive, CutOffAnywhere) {
  const TemporaryFolder folder;
  const std::string whole = bytes_of(testdata("tied") / "model.pt2");
  for (int i = 0; i < 40; ++i)
    EXPECT_SAYS(refusal_of_bytes(folder, whole.substr(0, whole.size() * i / 40)), "not a .pt2 archive");
  EXPECT_NE(refusal_of_bytes(folder, whole.substr(0, whole.size() - 1)), "nothing was thrown");
}

TEST(Archive, DamagedBytesOfAnEntryAreFound) {
  const TemporaryFolder folder;
  const Entries entries = entries_of(testdata("tied") / "model.pt2");
  const std::string whole = bytes_of(testdata("tied") / "model.pt2");
  for (const char* entry : {"models/model.json", "data/weights/weight_0", "data/weights/model_weights_config.json",
                            "data/constants/tensor_0", "data/sample_inputs/model.pt"}) {
    std::string damaged = whole;
    const size_t at = damaged.find(entries.at(entry));
    ASSERT_NE(at, std::string::npos) << entry;
    damaged[at + entries.at(entry).size() / 2] ^= 4;
    EXPECT_SAYS(refusal_of_bytes(folder, damaged), "entry '" + std::string(entry) + "' is damaged");
  }
}

// A flipped bit of the zip's own tables is found or does no harm; the only error is an InputError.
TEST(Archive, DamageAnywhereIsAnInputErrorOrNone) {
  const TemporaryFolder folder;
  const std::string whole = bytes_of(testdata("markers") / "model.pt2");
  int found = 0;
  for (size_t at = 0; at < whole.size(); at += 101) {
    std::string damaged = whole;
    damaged[at] ^= static_cast<char>(1 << (at % 8));
    SCOPED_TRACE("byte " + std::to_string(at));
    found += refusal_of_bytes(folder, damaged) != "nothing was thrown";
  }
  EXPECT_GT(found, 0);
}

TEST(Archive, MissingEntriesAreNamed) {
  const TemporaryFolder folder;
  const Entries whole = entries_of(testdata("tied") / "model.pt2");
  const auto without = [&](const std::string& entry) {
    Entries entries = whole;
    EXPECT_EQ(entries.erase(entry), 1U) << entry;
    return refusal_of([&] { capture::read_program(write_archive(folder, entries)); });
  };
  EXPECT_SAYS(without("models/model.json"), "no entry 'models/model.json'; expected an archive of torch.export.save()");
  EXPECT_SAYS(without("data/weights/weight_0"), "no entry 'data/weights/weight_0', which would hold the tensor '");
  EXPECT_SAYS(without("data/constants/tensor_0"), "which would hold the tensor 'scale'");
  EXPECT_SAYS(without("data/weights/model_weights_config.json"), "does not list the tensor 'unused'");
  EXPECT_SAYS(without("data/constants/model_constants_config.json"), "does not list the tensor 'scale'");
}

TEST(Archive, TensorsMustFitTheirPayload) {
  const TemporaryFolder folder;
  const Entries whole = entries_of(testdata("tied") / "model.pt2");
  const auto with = [&](const std::function<void(nlohmann::json&, Entries&)>& change) {
    Entries entries = whole;
    std::string& text = entries["data/weights/model_weights_config.json"];
    nlohmann::json list = nlohmann::json::parse(text);
    change(list["config"]["middle.weight"], entries);
    text = list.dump();
    return refusal_of([&] { capture::read_program(write_archive(folder, entries)); });
  };
  EXPECT_SAYS(with([](auto& item, Entries& entries) {
                entries["data/weights/" + item["path_name"].template get<std::string>()].resize(60);
              }),
              "tensor 'middle.weight' needs 64 bytes, but 'data/weights/");
  EXPECT_SAYS(with([](auto& item, Entries&) { item["tensor_meta"]["sizes"][0]["as_int"] = int64_t{1} << 62; }),
              "needs more than 2^63 bytes");
  EXPECT_SAYS(with([](auto& item, Entries&) { item["tensor_meta"]["sizes"][0]["as_int"] = -1; }),
              "that no tensor can have");
  EXPECT_SAYS(with([](auto& item, Entries&) {
                for (int i = 0; i < 2; ++i) {
                  item["tensor_meta"]["sizes"][i]["as_int"] = int64_t{1} << 40;
                  item["tensor_meta"]["strides"][i]["as_int"] = 0;
                }
              }),
              "tensor 'middle.weight' has sizes, strides or an offset that no tensor can have");
  EXPECT_SAYS(with([](auto& item, Entries&) {
                item["tensor_meta"]["sizes"] =
                    nlohmann::json::parse(R"([{"as_int": 0}, {"as_int": 1099511627776}, {"as_int": 1099511627776}])");
                item["tensor_meta"]["strides"] =
                    nlohmann::json::parse(R"([{"as_int": 1}, {"as_int": 1}, {"as_int": 1}])");
              }),
              "tensor 'middle.weight' has sizes, strides or an offset that no tensor can have");
  EXPECT_SAYS(with([](auto& item, Entries&) { item["tensor_meta"]["dtype"] = 99; }), "element type 99");
  EXPECT_SAYS(with([](auto& item, Entries&) {
                item["tensor_meta"]["dtype"] = 4;
                item["tensor_meta"]["requires_grad"] = true;
              }),
              "tensor 'middle.weight' requires a gradient, which elements of type i32 cannot have");
  EXPECT_SAYS(with([](auto& item, Entries&) { item["tensor_meta"]["layout"] = 1; }), "is not strided");
  EXPECT_SAYS(with([](auto& item, Entries&) { item["use_pickle"] = true; }), "is a tensor subclass");
  EXPECT_SAYS(with([](auto& item, Entries&) { item.erase("path_name"); }), "'path_name' not found");
}

// Python keeps keyword arguments in the order of the call; the program has its own order.
TEST(SampleInputs, KeywordsAreTakenByName) {
  c10::impl::GenericDict keywords(c10::StringType::get(), c10::AnyType::get());
  keywords.insert("late", int64_t{3});
  keywords.insert("early", c10::ivalue::Tuple::create({int64_t{1}, int64_t{2}}));
  const auto arguments = c10::ivalue::Tuple::create({int64_t{0}});
  const std::vector<char> pickle = torch::jit::pickle_save(c10::ivalue::Tuple::create({arguments, keywords}));
  const TemporaryFolder folder;
  Archive archive(write_archive(folder, {{"data/sample_inputs/model.pt", {pickle.begin(), pickle.end()}}}));
  const TreeSpec leaf, pair{"builtins.tuple", {}, {leaf, leaf}};
  TreeSpec spec{
      "builtins.tuple", {}, {{"builtins.tuple", {}, {leaf}}, {"builtins.dict", {"early", "late"}, {pair, leaf}}}};
  const auto leaves = [&] {
    std::vector<int64_t> numbers;
    for (const c10::IValue& value : read_sample_inputs(archive, spec).leaves) numbers.push_back(value.toInt());
    return numbers;
  };
  EXPECT_EQ(leaves(), (std::vector<int64_t>{0, 1, 2, 3}));
  spec.children[1].keys[1] = "other";
  EXPECT_EQ(leaves(), std::vector<int64_t>());
  EXPECT_SAYS(read_sample_inputs(archive, spec).error, "cannot be read");
}

TEST(Archive, OtherByteOrdersAreRefused) {
  const TemporaryFolder folder;
  Entries entries = entries_of(testdata("tied") / "model.pt2");
  EXPECT_EQ(entries["byteorder"], "little");
  entries["byteorder"] = "big";
  EXPECT_SAYS(refusal_of([&] { capture::read_program(write_archive(folder, entries)); }), "not little-endian");
}

TEST(Archive, WhatUnpacksToFarMoreThanTheFileHasIsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "bomb.pt2";
  {
    caffe2::serialize::PyTorchStreamWriter writer(path.string());
    const std::string zeros(size_t{64} << 20, '0');
    writer.writeRecord("models/model.json", zeros.data(), zeros.size(), /*compress=*/true);
    writer.writeEndOfFile();
  }
  ASSERT_LT(std::filesystem::file_size(path), size_t{1} << 18);
  EXPECT_SAYS(refusal_of([&] { capture::read_program(path); }),
              "entry 'models/model.json' unpacks to 67108864 bytes, those before it to 6, the file has ");
}

TEST(Archive, ManyEntriesThatUnpackToFarMoreTogetherAreRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "bombs.pt2";
  constexpr int kEntries = 100, kBytes = 1 << 20;
  {
    caffe2::serialize::PyTorchStreamWriter writer(path.string());
    const std::string zeros(kBytes, '0');
    for (int i = 0; i < kEntries; ++i)
      writer.writeRecord("data/weights/" + std::to_string(i), zeros.data(), zeros.size(), /*compress=*/true);
    writer.writeEndOfFile();
  }
  Archive archive(path);
  const auto read_all = [&] {
    for (int i = 0; i < kEntries; ++i) archive.read("data/weights/" + std::to_string(i), "a weight");
  };
  EXPECT_SAYS(refusal_of(read_all), " unpacks to 1048576 bytes, those before it to ");
}

TEST(Archive, TextsThatAreNotWhatTheyShouldBe) {
  const TemporaryFolder folder;
  Entries entries = entries_of(testdata("tied") / "model.pt2");
  const std::string model = entries["models/model.json"];
  entries["models/model.json"] = model.substr(0, model.size() / 2);
  EXPECT_SAYS(refusal_of([&] { capture::read_program(write_archive(folder, entries)); }),
              "entry 'models/model.json' is not JSON");
  entries["models/model.json"] = std::string(100'000, '[');
  EXPECT_SAYS(refusal_of([&] { capture::read_program(write_archive(folder, entries)); }), "more than 200 nested lists");
  entries["models/model.json"] = "{\"schema_version\": {}, " + model.substr(1);
  EXPECT_SAYS(refusal_of([&] { capture::read_program(write_archive(folder, entries)); }), "schema_version");
  entries["models/model.json"] = "[]";
  EXPECT_SAYS(refusal_of([&] { capture::read_program(write_archive(folder, entries)); }),
              "entry 'models/model.json' is malformed");
  for (const char* key : {"schema_version", "graph_module"}) {
    nlohmann::json changed = nlohmann::json::parse(model);
    changed.erase(key);
    entries["models/model.json"] = changed.dump();
    EXPECT_SAYS(refusal_of([&] { capture::read_program(write_archive(folder, entries)); }), key);
  }
}

}  // namespace
}  // namespace plumbline::capture::pt2
