// LibTorch is the oracle: its own names of the same numbers.
#include "runtime/types/types.h"

#include <c10/core/DeviceType.h>
#include <gtest/gtest.h>

#include "runtime/types/aten.h"

namespace plumbline::types {
namespace {

TEST(Types, EveryDtypeHasTheNumberAndTheNameThatLibTorchGivesIt) {
  for (const std::string_view name : dtype_names()) {
    const auto known = c10::getStringToDtypeMap().find(std::string(name));
    ASSERT_NE(known, c10::getStringToDtypeMap().end()) << name;
    EXPECT_EQ(to_aten(*dtype_named(name)), known->second) << name;
    EXPECT_EQ(from_aten(known->second), *dtype_named(name)) << name;
    EXPECT_EQ(name_of(*dtype_named(name)), name);
  }
  EXPECT_EQ(dtype_names().size(), 21u);
  for (const DtypeInfo& info : dtypes()) {
    EXPECT_EQ(info.bytes, c10::elementSize(to_aten(info.dtype))) << info.name;
    EXPECT_EQ(info.floating, c10::isFloatingType(to_aten(info.dtype))) << info.name;
  }
  EXPECT_FALSE(dtype_named("float31"));
  EXPECT_THROW(from_aten(c10::ScalarType::QInt8), InputError);
}

TEST(Types, EveryDeviceHasTheNumberAndTheNameThatLibTorchGivesIt) {
  for (int kind = 0; kind <= static_cast<int>(Device::Kind::PrivateUse1); ++kind) {
    const Device device{static_cast<Device::Kind>(kind), 1};
    const std::string expected = c10::DeviceTypeName(static_cast<c10::DeviceType>(kind), /*lower_case=*/true);
    EXPECT_EQ(name_of(device), expected + ":1");
    EXPECT_EQ(device_named(expected + ":1"), device);
    EXPECT_EQ(to_aten(device).index(), 1);
    EXPECT_EQ(from_aten(to_aten(device)), device);
  }
  EXPECT_EQ(name_of(Device{}), "cpu");
  for (const char* wrong : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:999"})
    EXPECT_FALSE(device_named(wrong)) << wrong;
}

TEST(Types, LayoutsAndMemoryFormatsHaveTheNumbersOfLibTorch) {
  EXPECT_EQ(layout_names().size(), static_cast<size_t>(c10::Layout::NumOptions));
  EXPECT_EQ(to_aten(*layout_named("strided")), c10::kStrided);
  EXPECT_EQ(to_aten(*layout_named("sparse_coo")), c10::kSparse);
  EXPECT_EQ(to_aten(*layout_named("sparse_csr")), c10::kSparseCsr);
  EXPECT_EQ(to_aten(*layout_named("sparse_csc")), c10::kSparseCsc);
  EXPECT_EQ(to_aten(*layout_named("sparse_bsr")), c10::kSparseBsr);
  EXPECT_EQ(to_aten(*layout_named("sparse_bsc")), c10::kSparseBsc);
  EXPECT_EQ(to_aten(*layout_named("jagged")), c10::kJagged);
  EXPECT_EQ(to_aten(*layout_named("_mkldnn")), c10::kMkldnn);
  EXPECT_EQ(memory_format_names().size(), static_cast<size_t>(c10::MemoryFormat::NumOptions));
  EXPECT_EQ(to_aten(*memory_format_named("contiguous_format")), c10::MemoryFormat::Contiguous);
  EXPECT_EQ(to_aten(*memory_format_named("preserve_format")), c10::MemoryFormat::Preserve);
  EXPECT_EQ(to_aten(*memory_format_named("channels_last")), c10::MemoryFormat::ChannelsLast);
  EXPECT_EQ(to_aten(*memory_format_named("channels_last_3d")), c10::MemoryFormat::ChannelsLast3d);
}

}  // namespace
}  // namespace plumbline::types
