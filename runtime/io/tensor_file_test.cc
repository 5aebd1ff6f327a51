#include "runtime/io/tensor_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "runtime/error.h"
#include "runtime/io/temporary_folder.h"
#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

class TensorFile : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
};

template <typename T>
HostTensor tensor_of(std::string dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  HostTensor tensor{std::move(dtype), std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

std::string with_length(std::string header, const std::string& data) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

void expect_refused(const std::string& bytes, const std::string& reason) {
  testing::expect_line(testing::refusal([&] { decode_tensors(bytes, "a.safetensors"); }), "a.safetensors: ", reason);
}

TEST_F(TensorFile, WritesTheBytesOfTheFormat) {
  TensorMap tensors;
  tensors["b"] = tensor_of<uint8_t>("U8", {3}, {7, 8, 9});
  tensors["a"] = tensor_of<float>("F32", {1, 2}, {1.0f, -2.0f});
  // Written by hand from the format's description; the padded header is 112 bytes long.
  const std::string header =
      R"({"a":{"data_offsets":[0,8],"dtype":"F32","shape":[1,2]},"b":{"data_offsets":[8,11],"dtype":"U8","shape":[3]}})";
  ASSERT_EQ(header.size(), 109u);
  const std::string expected = std::string("\x70\0\0\0\0\0\0\0", 8) + header + "   " +
                               std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0\x07\x08\x09", 11);
  EXPECT_EQ(encode_tensors(tensors), expected);
}

TEST_F(TensorFile, ReadsTensorsOutOfNameOrderAndMetadata) {
  const TensorMap tensors = decode_tensors(
      with_length(R"({"__metadata__":{"format":"pt"},"z":{"dtype":"I32","shape":[],"data_offsets":[0,4]},)"
                  R"("a":{"dtype":"BF16","shape":[0,5],"data_offsets":[4,4]}} )",
                  std::string("\x05\0\0\0", 4)),
      "x");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(element_as_double(tensors.at("z"), 0), 5.0);
  EXPECT_EQ(describe(tensors.at("z")), "i32[]");
  EXPECT_EQ(describe(tensors.at("a")), "bf16[0,5]");
  EXPECT_EQ(element_count(tensors.at("a")), 0);
}

TEST_F(TensorFile, RefusesWhatTheFormatDoesNotAllow) {
  const std::string good = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  EXPECT_NO_THROW(decode_tensors(with_length(good, "1234"), "x"));
  expect_refused("1234567", "truncated: 7 bytes");
  expect_refused(with_length(good, "1234").substr(0, 30), "truncated: header of 53 bytes, 22 left");
  expect_refused(with_length(good, "123"), "lie outside the 3 bytes");
  expect_refused(with_length(good, "12345"), "1 bytes after the last tensor");
  expect_refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), "not a safetensors file");
  expect_refused(with_length("{\"a\":", ""), "not JSON");
  expect_refused(with_length("[1]", ""), "not a JSON object");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                             "12"),
                 "\"a\" twice");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                             "123"),
                 "tensor `b` overlaps");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "123"),
                 "1 bytes that belong to no tensor before `a`");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[3,1]}})", "123"), "lie outside");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[-1,1]}})", "12"), "[begin, end]");
  expect_refused(with_length(R"({"a":{"dtype":"Q8","shape":[2],"data_offsets":[0,2]}})", "12"), "unknown dtype \"Q8\"");
  expect_refused(with_length(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,2]}})", "12"), "takes 8 bytes");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", "12"), "list of sizes");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,2]}})", "12"),
                 "2^63 bytes");
  // Without elements, but with strides that are no numbers of 64 bits.
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", ""),
                 "2^63 bytes");
  std::string ones = "1";
  for (int i = 1; i < 33; ++i) ones += ",1";
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]}})", "1"),
                 "33 dimensions in its shape; expected at most 32");
  expect_refused(with_length(R"({"a":{"dtype":"U8","shape":[2],"offsets":[0,2]}})", "12"), "exactly dtype, shape");
  expect_refused(with_length(R"({"a\nb":{"dtype":"U8","shape":[2],"offsets":[0,2]}})", "12"), "tensor `a b`: ");
  expect_refused(with_length(R"({"a\nb":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"), "before `a b`");
  expect_refused(
      with_length(R"({"a":{"dtype":")" + std::string(1000, 'q') + R"(","shape":[2],"data_offsets":[0,2]}})", "12"),
      "unknown dtype \"" + std::string(59, 'q') + "...;");
}

TEST_F(TensorFile, RefusesToWriteWhatCannotBeRead) {
  EXPECT_THROW(encode_tensors({{"a", {"F32", {2}, std::vector<std::byte>(7)}}}), InputError);
  EXPECT_THROW(encode_tensors({{"a", {"F31", {2}, std::vector<std::byte>(8)}}}), InputError);
  EXPECT_THROW(encode_tensors({{"__metadata__", {"U8", {1}, std::vector<std::byte>(1)}}}), InputError);
  EXPECT_THROW(encode_tensors({{"\xff", {"U8", {1}, std::vector<std::byte>(1)}}}), InputError);
  EXPECT_THROW(write_tensor_file(folder_ / "none" / "a", {}), InputError);
  EXPECT_THROW(read_tensor_file(folder_ / "none"), InputError);
  EXPECT_THROW(read_tensor_file(folder_.path()), InputError);
}

TEST_F(TensorFile, RandomMapsComeBackAndNothingElseIsLeftInTheFolder) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> names = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16",
                                          "I8",  "U64", "U32", "U16",  "U8",  "BOOL"};
  for (int round = 0; round < 20; ++round) {
    TensorMap tensors;
    for (unsigned i = random() % 6; i > 0; --i) {
      HostTensor tensor{names[random() % names.size()], {}, {}};
      for (unsigned d = random() % 4; d > 0; --d) tensor.shape.push_back(random() % 4);
      tensor.data.resize(element_size(tensor.dtype) * static_cast<size_t>(element_count(tensor)));
      for (std::byte& byte : tensor.data) byte = static_cast<std::byte>(random());
      tensors["0/grad/-/-/\"\u00e9\\" + std::to_string(random() % 100)] = tensor;
    }
    write_tensor_file(folder_ / "t.safetensors", tensors);
    EXPECT_EQ(read_tensor_file(folder_ / "t.safetensors"), tensors);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(TensorFile, DecodesElements) {
  const double inf = std::numeric_limits<double>::infinity();
  // IEEE 754 half: 1, -2, largest, smallest normal, smallest subnormal, -0, inf.
  const HostTensor half = tensor_of<uint16_t>("F16", {7}, {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x7c00});
  const std::vector<double> halves = {1.0, -2.0, 65504.0, 0.00006103515625, 0.000000059604644775390625, 0.0, inf};
  for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(element_as_double(half, i), halves[i]) << i;
  EXPECT_TRUE(std::signbit(element_as_double(half, 5)));
  EXPECT_TRUE(std::isnan(element_as_double(tensor_of<uint16_t>("F16", {}, {0xfe01}), 0)));
  const HostTensor brain = tensor_of<uint16_t>("BF16", {4}, {0x3f80, 0xc040, 0x4049, 0xff80});
  const std::vector<double> brains = {1.0, -3.0, 3.140625, -inf};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(element_as_double(brain, i), brains[i]) << i;
  EXPECT_EQ(element_as_double(tensor_of<float>("F32", {1}, {0.1f}), 0), 0.100000001490116119384765625);
  EXPECT_EQ(element_as_double(tensor_of<int64_t>("I64", {2}, {5, -(int64_t{1} << 40)}), 1), -1099511627776.0);
  EXPECT_EQ(element_as_double(tensor_of<int32_t>("I32", {1}, {-7}), 0), -7.0);
  EXPECT_EQ(element_as_double(tensor_of<int16_t>("I16", {1}, {-300}), 0), -300.0);
  EXPECT_EQ(element_as_double(tensor_of<int8_t>("I8", {1}, {-3}), 0), -3.0);
  EXPECT_EQ(element_as_double(tensor_of<uint8_t>("U8", {1}, {200}), 0), 200.0);
  EXPECT_EQ(element_as_double(tensor_of<uint16_t>("U16", {1}, {65535}), 0), 65535.0);
  EXPECT_EQ(element_as_double(tensor_of<uint32_t>("U32", {1}, {4294967295}), 0), 4294967295.0);
  EXPECT_EQ(element_as_double(tensor_of<uint64_t>("U64", {1}, {uint64_t{1} << 63}), 0), 9223372036854775808.0);
  EXPECT_EQ(element_as_double(tensor_of<uint8_t>("BOOL", {2}, {0, 1}), 1), 1.0);
  EXPECT_EQ(element_as_double(make_f64({2}, {0.5, 0.25}), 1), 0.25);
  EXPECT_EQ(describe(half), "f16[7]");
}

}  // namespace
}  // namespace plumbline
