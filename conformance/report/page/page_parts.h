// Parts of the page of page.h.
#pragma once

#include <string>
#include <string_view>

#include "conformance/judge/verdict.h"

namespace plumbline::conformance {

/// What stands in a <style> and in a <script>.
extern const std::string_view page_style;
extern const std::string_view page_script;

/// The character that stands for a status on the page, as HTML.
std::string_view page_symbol(Status status);

/// An <article> with everything known about one verdict: its sentence, how to repeat it, the first difference with what
/// stands around it, what was checked. `id` is its fragment's name; `report` the number of its report on the page.
std::string verdict_article(const CaseVerdict& verdict, const std::string& id, size_t report,
                            const std::string& backend);

}  // namespace plumbline::conformance
