// What stands in the place of a file: nothing there makes the reader wait, or leads it out of the folder.
#include "runtime/io/regular_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "runtime/io/temporary_folder.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/testing/refusal.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

class RegularFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "results/case");
    fs::create_directories(folder_ / "elsewhere");
    write_file(folder_ / "results/case/file", "text");
    write_file(folder_ / "elsewhere/file", "text");
  }
  std::string below(const fs::path& path) const {
    return testing::refusal([&] { RegularFile(folder_ / "results", path); });
  }
  std::string reason(const fs::path& path, const std::string& why) const {
    return "cannot read " + (folder_ / "results" / path).string() + ": " + why;
  }
  void make_socket(const fs::path& path) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << path;
    close(socket);
  }

  const TemporaryFolder folder_;
};

TEST_F(RegularFiles, AreRead) {
  const RegularFile file(folder_ / "results", "case/file");
  EXPECT_EQ(file.path(), folder_ / "results/case/file");
  EXPECT_EQ(file.size(), 4u);
  std::string text(2, '\0');
  file.read(1, text.data(), 2);
  EXPECT_EQ(text, "ex");
  EXPECT_EQ(testing::refusal([&] { file.read(3, text.data(), 2); }),
            reason("case/file", "it became shorter while it was read"));
}

TEST_F(RegularFiles, EveryOtherKindIsNamed) {
  const fs::path place = folder_ / "results/case/other";
  EXPECT_EQ(below("case/other"), reason("case/other", "No such file or directory"));
  ASSERT_EQ(mkfifo(place.c_str(), 0600), 0);
  EXPECT_EQ(below("case/other"), reason("case/other", "it is a FIFO; expected a regular file"));
  fs::remove(place);
  fs::create_directory(place);
  EXPECT_EQ(below("case/other"), reason("case/other", "it is a folder; expected a regular file"));
  fs::remove(place);
  make_socket(place);
  EXPECT_EQ(below("case/other"), reason("case/other", "it is a socket; expected a regular file"));
  fs::remove(place);
  fs::create_symlink("/dev/zero", place);
  EXPECT_EQ(below("case/other"), reason("case/other", "it is a symbolic link; expected a regular file"));
  EXPECT_EQ(testing::refusal([&] { RegularFile file(place); }),
            reason("case/other", "it is a character device; expected a regular file"));
}

TEST_F(RegularFiles, LinksBelowTheFolderAreNotFollowed) {
  fs::create_symlink(folder_ / "elsewhere/file", folder_ / "results/case/link");
  fs::create_symlink("link", folder_ / "results/case/again");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "results/linked");
  fs::create_directory_symlink("results", folder_ / "users");
  EXPECT_EQ(below("case/link"), reason("case/link", "it is a symbolic link; expected a regular file"));
  EXPECT_EQ(below("case/again"), reason("case/again", "it is a symbolic link; expected a regular file"));
  EXPECT_EQ(below("linked/file"), reason("linked", "it is a symbolic link; expected a folder"));
  EXPECT_EQ(RegularFile(folder_ / "users", "case/file").size(), 4u) << "the user's own link";
  EXPECT_EQ(RegularFile(folder_ / "results/case/again").size(), 4u) << "a file that the user names";
}

TEST_F(RegularFiles, NothingOutsideOfTheFolderIsOpened) {
  EXPECT_EQ(below("../elsewhere/file"), reason("../elsewhere/file", "'../elsewhere/file' leads out of the folder"));
  EXPECT_EQ(below("case/../../elsewhere/file"),
            reason("case/../../elsewhere/file", "'case/../../elsewhere/file' leads out of the folder"));
  const std::string absolute = (folder_ / "elsewhere/file").string();
  EXPECT_EQ(below(absolute), "cannot read " + absolute + ": '" + absolute + "' leads out of the folder");
}

TEST_F(RegularFiles, AFolderOnTheWayIsNoOtherFile) {
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "results/linked");
  EXPECT_EQ(why_no_folder(folder_ / "results", "case"), "");
  EXPECT_EQ(why_no_folder(folder_ / "results", "case/none/more"), "") << "not there";
  EXPECT_EQ(why_no_folder(folder_ / "results", "linked/deeper"),
            reason("linked", "it is a symbolic link; expected a folder"));
  EXPECT_EQ(why_no_folder(folder_ / "results", "case/file"),
            reason("case/file", "it is a regular file; expected a folder"));
}

TEST_F(RegularFiles, ARewriteChangesTheIdentity) {
  const fs::path path = folder_ / "results/case/file";
  const auto identity = [&] { return RegularFile(path).identity(); };
  const FileIdentity first = identity();
  EXPECT_EQ(identity(), first);
  write_file(path, "text");  // another file of the same name
  EXPECT_NE(identity(), first);
  const FileIdentity second = identity();
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_NE(identity(), second);
}

TEST_F(RegularFiles, WithHolesAreRefusedByTheirSizeBeforeAnythingIsRead) {
  const fs::path path = folder_ / "results/case/holes";
  std::ofstream(path) << std::string("\x40\0\0\0\0\0\0\0", 8)
                      << R"({"a":{"dtype":"F32","shape":[10737418224],"data_offsets":[0,42949672896]}} )";
  fs::resize_file(path, 42949672968);  // as its header says: 40 GiB
  EXPECT_EQ(testing::refusal([&] { read_tensors(RegularFile(path), 1 << 20); }),
            path.string() + ": 42949672968 bytes; expected at most 1048576");
  fs::resize_file(path, uint64_t{1} << 42);  // more than any machine's memory
  EXPECT_EQ(testing::refusal([&] { read_file(path); }), reason("case/holes", "no memory for its 4398046511104 bytes"));
}

}  // namespace
}  // namespace plumbline
