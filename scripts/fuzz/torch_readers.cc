// Readers of programs of torch.export: the archive as it is, and the graph in a valid one, which a change of the
// archive's bytes hardly reaches (each entry has a checksum).
#include <array>

#include "runtime/capture/pt2/program.h"
#include "runtime/capture/pt2/testing/archives.h"
#include "runtime/graph/io/text.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/io/temporary_folder.h"
#include "scripts/fuzz/readers.h"

namespace plumbline::fuzz {
namespace {

/// The graph that was read has a text form, which parses to the same graph.
void read_program_of(const std::filesystem::path& archive) {
  const std::string written = graph::to_text(capture::read_program(archive).graph);
  expect(graph::to_text(graph::parse_graph(written)) == written, "the graph is read as another one");
}

void read_exported_program(std::string_view text) { read_program_of(write_temporary_file(text, "model.pt2")); }

/// In the archive of a program with three layers, in place of its own graph.
void read_exported_graph(std::string_view text) {
  static const TemporaryFolder folder;
  static const capture::pt2::Entries whole = capture::pt2::entries_of(capture::pt2::testdata("autocast") / "model.pt2");
  capture::pt2::Entries entries = whole;
  entries["models/model.json"] = text;
  read_program_of(capture::pt2::write_archive(folder, entries));
}

constexpr std::array<Reader, 2> kReaders = {
    {{"exported_graph", read_exported_graph}, {"exported_program", read_exported_program}}};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

}  // namespace plumbline::fuzz
