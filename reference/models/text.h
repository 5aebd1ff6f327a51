// The training text of the corpus's language model.
#pragma once

#include <string_view>

namespace plumbline::models {

/// Lincoln's address at Gettysburg, 19 November 1863 (public domain; the copy that Lincoln made for Bliss). Plain
/// ASCII, valid for the whole program.
std::string_view gettysburg_address();

}  // namespace plumbline::models
