#include "runtime/transport/nccl/library_choice.h"

#include <gtest/gtest.h>

#include "runtime/testing/refusal.h"
#include "runtime/transport/nccl/library.h"

namespace plumbline::transport::nccl {
namespace {

using testing::expect_part;
using testing::failure;
using testing::refusal;

TEST(NcclLibraryChoice, ReadsALibraryAndWords) {
  EXPECT_EQ(parse_library_choice("").library, "libnccl.so.2");
  EXPECT_EQ(parse_library_choice("/opt/nccl/libnccl.so.2").library, "/opt/nccl/libnccl.so.2");
  EXPECT_TRUE(parse_library_choice("libnccl.so.2:headers").headers);
  const LibraryChoice stub = parse_library_choice("stub:late,headers,poison");
  EXPECT_EQ(stub.library, "stub");
  EXPECT_EQ(stub.modes, "late,poison");
  EXPECT_TRUE(stub.headers);
  EXPECT_FALSE(parse_library_choice("stub").headers);
}

TEST(NcclLibraryChoice, RefusesOtherWords) {
  expect_part(refusal([] { parse_library_choice("stub:lte"); }), "--nccl: 'lte' is unknown; expected rendezvous, ");
  expect_part(refusal([] { parse_library_choice("stub:"); }), "--nccl: '' is unknown");
  expect_part(refusal([] { parse_library_choice("libnccl.so.2:late"); }), "expected headers (the stub has such modes)");
  expect_part(refusal([] { parse_library_choice("stub:eager,late"); }), "eager sends do not wait");
}

TEST(NcclLibrary, AnAbsentOneIsSaidWithTheRemedy) {
  const std::string text = failure<Error>([] { load_library({.library = "/nowhere/libnccl.so.2"}); });
  expect_part(text, "/nowhere/libnccl.so.2");
  expect_part(text, "--nccl names its path");
}

TEST(NcclLibrary, AnotherLibraryLacksItsFunctions) {
  expect_part(failure<Error>([] { load_library({.library = "libz.so.1"}); }),
              "libz.so.1 has no function ncclGetVersion");
}

TEST(NcclLibrary, TheStubIsKnownByItsPathToo) {
  const Library stub = load_library(parse_library_choice("stub"));
  EXPECT_EQ(load_library({.library = stub.path}).name(), "nccl (stub: eager)");
  EXPECT_EQ(stub.cuda_path, stub.path);
}

}  // namespace
}  // namespace plumbline::transport::nccl
