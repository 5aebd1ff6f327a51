// A case as files that any language can read: case.json, program.json, schedule.csv and tensors.safetensors.
//
// conformance/INTERPRETING.md is the contract for readers; conformance/schema/ has the JSON schemas.
#pragma once

#include <cstdint>
#include <filesystem>

#include "reference/case.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::conformance {

/// The formats that case.json and program.json declare. A reader must refuse a file of a version that it does not know.
inline constexpr const char* kCaseFormat = "plumbline-case/1";
inline constexpr const char* kProgramFormat = "plumbline-program/1";

/// Writes the case, with its model cut into the stages of `schedule`, into `folder`, which is created if necessary;
/// files of the same names are overwritten. On one machine the same arguments give the same bytes. Throws InputError if
/// the case cannot be exported (no train or eval step, an operator outside the opset, an in-place change without a
/// functional form), before anything is written, and WriteError if a file cannot be written.
void export_case(const reference::Case& c, const schedule::Schedule& schedule, uint64_t seed,
                 const std::filesystem::path& folder);

}  // namespace plumbline::conformance
