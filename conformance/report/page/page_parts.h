// Parts of the page of page.h.
#pragma once

#include <string>
#include <string_view>

#include "conformance/judge/verdict.h"

namespace plumbline::conformance {

/// The files of the same names: the page with {{places}} to fill in, its <style> and its <script>. What the page does
/// without the script is said in page.h; the order of `worst` in it is that of worse() in verdict.h.
extern const std::string_view page_html, page_css, page_js;

/// The character that stands for a status on the page, as HTML.
std::string_view page_symbol(Status status);

/// An <article> with everything known about one verdict: its sentence, how to repeat it, the first difference with what
/// stands around it, what was checked. `id` is its fragment's name; `report` the number of its report on the page.
std::string verdict_article(const Verdict& verdict, const std::string& id, size_t report, const std::string& backend);

}  // namespace plumbline::conformance
