// The parts of the page that page.h describes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "conformance/judge/verdict/verdict.h"

namespace plumbline::conformance {

/// The contents of page.html, page.css and page.js: the page with {{placeholders}}, its <style> and its <script>. The
/// order of `worst` in page.js must be that of worse() in judge/verdict/finding.h.
extern const std::string_view page_html, page_css, page_js;

/// The symbol of a status on the page: one UTF-8 character that needs no escape in HTML.
std::string_view page_symbol(Status status);

/// Returns an <article> about one verdict: its sentence, the command that repeats the run, the first difference with
/// its neighbouring elements, the checked kinds of results, and a link to the log of a failure. `id` is the id of the
/// HTML element, `report` the index of the report on the page, `backend` the label of the backend, and `folder` as in
/// PageReport.
std::string verdict_article(const Verdict& verdict, const std::string& id, size_t report, const std::string& backend,
                            const std::filesystem::path& folder);

}  // namespace plumbline::conformance
