#include "conformance/report/page/page_parts.h"

namespace plumbline::conformance {

const std::string_view page_style = R"css(
:root {
  --ink: #1f2328; --faint: #59636e; --paper: #ffffff; --raised: #f6f8fa; --line: #d1d9e0; --link: #0550ae;
  --good: #116329; --good-bg: #d7f5df; --bad: #a40e26; --bad-bg: #ffd8d3; --late: #8a3800; --late-bg: #ffe2c7;
  --odd: #6f4e00; --odd-bg: #fbefb5; --waived: #512a97; --waived-bg: #e9dcfb; --none: #59636e; --none-bg: #eef1f4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6edf3; --faint: #9aa5b1; --paper: #0d1117; --raised: #161b22; --line: #3d444d; --link: #79b8ff;
    --good: #7ee2a0; --good-bg: #12351f; --bad: #ffaba3; --bad-bg: #5c1a1f; --late: #ffc28a; --late-bg: #54300f;
    --odd: #f0d77b; --odd-bg: #463a0c; --waived: #d2b9ff; --waived-bg: #37235f; --none: #9aa5b1; --none-bg: #22272e;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 110rem; padding: 1rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0.5rem 0; } h1 span { font-weight: 400; color: var(--faint); }
h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; } h3 { font-size: 1rem; margin: 1rem 0 0.3rem; overflow-wrap: anywhere; }
h3 small { font-weight: 400; color: var(--faint); } a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 1px; }
.hint, .facts, .title { color: var(--faint); margin: 0.3rem 0; }
.counts { display: flex; flex-wrap: wrap; gap: 0.5rem; list-style: none; padding: 0; margin: 0.5rem 0; }
.counts li { padding: 0.1rem 0.6rem; border-radius: 1rem; border: 1px solid; }
.symbol { font-weight: 700; font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.pass { color: var(--good); background: var(--good-bg); }
.fail, .error { color: var(--bad); background: var(--bad-bg); }
.timeout { color: var(--late); background: var(--late-bg); }
.mistrusted, .xpass { color: var(--odd); background: var(--odd-bg); }
.xfail { color: var(--waived); background: var(--waived-bg); }
.unsupported, .skipped, .not-run { color: var(--none); background: var(--none-bg); }
#filters { display: flex; flex-wrap: wrap; gap: 0.6rem 1rem; align-items: end; margin: 1rem 0; padding: 0.8rem;
  background: var(--raised); border: 1px solid var(--line); border-radius: 8px; }
#filters[hidden] { display: none; }
#filters fieldset { display: flex; flex-wrap: wrap; gap: 0.3rem; border: 0; padding: 0; margin: 0; }
#filters legend { padding: 0; } #filters > label { display: grid; }
#filters fieldset label { padding: 0.1rem 0.5rem; border-radius: 1rem; cursor: pointer; }
input[type=search] { width: 20rem; max-width: 100%; } output { color: var(--faint); }
input, select, button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line);
  border-radius: 6px; padding: 0.2rem 0.5rem; }
button { cursor: pointer; }
.scroll { overflow: auto; max-height: 85vh; border: 1px solid var(--line); border-radius: 8px; width: fit-content; max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; }
th, td { text-align: left; font-weight: 400; padding: 0.1rem 0.5rem; border-bottom: 1px solid var(--line); }
thead th { position: sticky; top: 0; background: var(--raised); vertical-align: bottom; z-index: 1; font-weight: 600; }
#matrix tbody th, #matrix .corner { position: sticky; left: 0; background: var(--raised); z-index: 1;
  border-right: 1px solid var(--line); white-space: nowrap; }
#matrix .corner { z-index: 2; } #matrix td { padding: 1px; } #matrix td.truth { padding: 0 0.5rem; color: var(--faint); }
#matrix tr + tr th.schedule { top: auto; position: static; }
th.schedule { padding: 0.4rem 0.1rem; } th.schedule span { writing-mode: vertical-rl; transform: rotate(180deg); }
th.schedule { text-align: center; } th.group { border-left: 1px solid var(--line); }
#matrix td a { display: block; min-width: 2rem; text-align: center; text-decoration: none; border-radius: 4px;
  line-height: 1.7; }
#matrix td a:hover { outline: 2px solid var(--link); } #matrix td a sub { font-size: 0.65em; margin-left: 1px; }
#matrix [hidden] { display: none; }
.plain td, .plain th { padding: 0.2rem 0.8rem; overflow-wrap: anywhere; } .plain td { max-width: 60rem; }
.verdict { color: inherit; background: var(--raised); border: 1px solid var(--line); border-left-width: 6px;
  border-radius: 8px; padding: 0.7rem 1rem; margin: 0.6rem 0; content-visibility: auto; contain-intrinsic-size: auto 9rem; }
.verdict.pass { border-left-color: var(--good); } .verdict.fail, .verdict.error { border-left-color: var(--bad); }
.verdict.timeout { border-left-color: var(--late); } .verdict.xfail { border-left-color: var(--waived); }
.verdict.mistrusted, .verdict.xpass { border-left-color: var(--odd); } .verdict:target { outline: 3px solid var(--link); }
.verdict h3 { margin-top: 0; } .sentence { margin: 0.4rem 0; overflow-wrap: anywhere; }
code, .around { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 0.87em; }
code { overflow-wrap: anywhere; background: var(--paper); padding: 0.15rem 0.4rem; border-radius: 4px; }
.around { margin: 0.5rem 0; } .around caption { text-align: left; font-weight: 600; white-space: nowrap; padding-bottom: 0.2rem; }
.around thead th { position: static; } .around td { text-align: right; } .around td:last-child { text-align: left; }
.around .differs > * { background: var(--bad-bg); color: var(--bad); font-weight: 600; }
meter { width: 12rem; vertical-align: middle; }
.timeline svg { max-width: 100%; height: auto; background: #fff; border-radius: 8px; }
summary { cursor: pointer; }
dialog { width: min(60rem, 94vw); max-height: 90vh; overflow: auto; color: var(--ink); background: var(--paper);
  border: 1px solid var(--line); border-radius: 10px; }
dialog::backdrop { background: rgb(0 0 0 / 50%); } dialog form { text-align: right; }
.js #details { display: none; }
@media print { .js #details { display: block; } #filters { display: none; } .scroll { max-height: none; } }
)css";

}  // namespace plumbline::conformance
