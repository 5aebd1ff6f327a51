// `plumbline check CERTIFICATE`: proves again what a certificate says, and compares.
#pragma once

#include <filesystem>
#include <iosfwd>

namespace plumbline::proof {

/// Proves every run, or step, of a certificate of `plumbline prove` again, and prints a line for each to `out`. A run
/// is confirmed if its outcome, the terms of all results, and all else that the certificate tells of it are the same.
/// Returns the exit code: 0 if all are confirmed and proven, 1 if all are confirmed and one is not proven, 2 if one is
/// not confirmed. Throws InputError for a file that is no such certificate.
int verify_certificate(const std::filesystem::path& path, std::ostream& out);

}  // namespace plumbline::proof
