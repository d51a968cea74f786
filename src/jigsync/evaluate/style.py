"""The report's style sheet: light and dark, on screens of any width, readable in grey."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #24231f; --faint: #6b6962; --rule: #dddbd4; --head: #f2f1ec;
  --s0: #0072b2; --s1: #c2500b; --s2: #007a58; --s3: #a8497f; --s4: #8a6d00; --s5: #55534d;
  --s6: #6a45c9; --s7: #7a4a1e; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #1b1b19; --ink: #ecebe6; --faint: #a5a29a; --rule: #3a3935; --head: #262622;
    --s0: #56b4e9; --s1: #f08a4b; --s2: #2fc79a; --s3: #e29ac4; --s4: #e6c229; --s5: #d4d2cb;
    --s6: #b39df5; --s7: #d0a070; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .5rem; padding-top: .8rem; border-top: 1px solid var(--rule); }
h3 { font-size: .95rem; font-weight: 600; margin: 1.4rem 0 .4rem; overflow-wrap: anywhere; }
p { max-width: 46rem; margin: .3rem 0 .8rem; }
.lead, small, figcaption, dd { color: var(--faint); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
a { color: var(--s0); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .55rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child, td:nth-child(2) { text-align: left; }
thead th { background: var(--head); font-weight: 600; border-bottom: 1px solid var(--rule); }
tr.first > * { border-top: 1px solid var(--rule); }
td small { display: block; font-size: .78rem; line-height: 1.2; }
td:nth-child(2) small { max-width: 15rem; white-space: normal; }
strong small { font-weight: normal; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: .5rem 1.5rem; }
figure { margin: 0; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .title { font-weight: 600; font-size: 13px; }
svg .tick { fill: var(--faint); }
svg .axis { stroke: var(--rule); }
svg .line, svg .whisker { fill: none; stroke: currentColor; stroke-width: 1.6; }
svg .line { opacity: .85; }
svg circle, svg polygon { fill: currentColor; stroke: currentColor; stroke-width: 1.6; stroke-linejoin: round; }
svg .hollow { fill: var(--paper); }
.s0 { color: var(--s0); } .s1 { color: var(--s1); } .s2 { color: var(--s2); }
.s3 { color: var(--s3); } .s4 { color: var(--s4); } .s5 { color: var(--s5); }
.s6 { color: var(--s6); } .s7 { color: var(--s7); }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; }
.key span { display: inline-flex; align-items: center; gap: .4rem; }
.key .swatch { width: 36px; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(170px, 1fr)); gap: .8rem; }
.gallery img { width: 100%; height: auto; display: block; border-radius: 2px; }
figcaption { font-size: .8rem; line-height: 1.35; margin-top: .3rem; }
figcaption b { color: var(--ink); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; }
code { font-size: .8rem; overflow-wrap: anywhere; }
@media print { body { background: #fff; } .scroll { overflow: visible; } }
"""
