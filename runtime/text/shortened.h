// Shortens text from outside (a backend's reasons, names in its files) for a message of one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumbline {

/// Whole UTF-8 characters from the beginning of `text`, at most `most` bytes.
std::string_view beginning_of(std::string_view text, size_t most);

/// `text`, or its first `most` bytes, an ellipsis and the number of characters that are left out. A text little longer
/// than `most` stays whole, so that one that was shortened is not shortened again.
std::string shortened(std::string_view text, size_t most = 500);

}  // namespace plumbline
