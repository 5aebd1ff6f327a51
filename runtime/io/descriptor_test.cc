#include "runtime/io/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <type_traits>

namespace plumbline {
namespace {

static_assert(!std::is_copy_constructible_v<Descriptor> && !std::is_copy_assignable_v<Descriptor>);

int opened() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, IsClosedAtTheEnd) {
  const int number = opened();
  {
    const Descriptor descriptor(number);
    EXPECT_EQ(descriptor.get(), number);
    EXPECT_TRUE(descriptor);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(Descriptor());
  EXPECT_EQ(Descriptor().get(), -1);
}

TEST(Descriptor, IsClosedForAnotherOne) {
  const int first = opened(), second = opened(), third = opened();
  Descriptor descriptor(first);
  descriptor.reset(second);
  EXPECT_FALSE(is_open(first));
  descriptor = Descriptor(third);
  EXPECT_FALSE(is_open(second));
  EXPECT_EQ(descriptor.get(), third);
  descriptor.reset();
  EXPECT_FALSE(is_open(third));
  EXPECT_FALSE(descriptor);
}

TEST(Descriptor, HasOneOwner) {
  const int number = opened();
  Descriptor first(number);
  Descriptor second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_EQ(second.get(), number);
  first = std::move(second);
  EXPECT_EQ(first.get(), number);
  EXPECT_EQ(first.release(), number);
  EXPECT_FALSE(first);
  EXPECT_TRUE(is_open(number));
  close(number);
}

}  // namespace
}  // namespace plumbline
