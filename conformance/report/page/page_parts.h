// The parts of the page that page.h describes.
#pragma once

#include <string>
#include <string_view>

#include "conformance/judge/verdict.h"

namespace plumbline::conformance {

/// The contents of the files of the same names: the page with {{places}} to fill in, its <style> and its <script>. The
/// order of `worst` in page.js must be that of worse() in verdict.h.
extern const std::string_view page_html, page_css, page_js;

/// The symbol of a status, as HTML.
std::string_view page_symbol(Status status);

/// An <article> with everything known about one verdict: its sentence, the command that repeats it, the first
/// difference with its neighbouring elements, what was checked. `id` is its fragment's name, `report` the index of its
/// report on the page.
std::string verdict_article(const Verdict& verdict, const std::string& id, size_t report, const std::string& backend);

}  // namespace plumbline::conformance
