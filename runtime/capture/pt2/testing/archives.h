// Shared by the tests of this folder: takes archives apart, changes them and reassembles them; makes archives of
// programs written in the test.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/io/temporary_folder.h"

namespace plumbline::capture::pt2 {

/// The archives made by PyTorch (testdata/make).
std::filesystem::path testdata(const std::string& name);

/// Entry name -> bytes.
using Entries = std::map<std::string, std::string>;
Entries entries_of(const std::filesystem::path& archive);

/// Writes an archive with these entries to a folder and returns its path.
std::filesystem::path write_archive(const TemporaryFolder& folder, const Entries& entries,
                                    const std::string& name = "model.pt2");

/// The text of the InputError that `action` throws, checked to be one line; "nothing was thrown" otherwise.
std::string refusal_of(const std::function<void()>& action);

/// A program over the input x, f32[2,3], without parameters: a model.json whose graph has these nodes and outputs.
/// `nodes` is JSON with single quotes for double ones: a list of [target, name, inputs, outputs, stack], with inputs as
/// {name: argument}.
Entries program_of(const std::string& nodes, const std::string& outputs);

}  // namespace plumbline::capture::pt2
