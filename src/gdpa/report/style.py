"""The style of the page: small screens first, light and dark, no font or file from elsewhere."""

__all__ = ["STYLE"]

STYLE = """
:root{--paper:#fff;--card:#f4f5f7;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;
--k0:#0072b2;--k1:#e69f00;--k2:#009e73;--k3:#cc79a7;--k4:#56b4e9;--k5:#d55e00;--k6:#8c7a00;
--k7:#5c5c5c;
--u0:#d5dbe1;--u1:#e8b97b;--u2:#e08a2c;--u3:#b3540a;--u4:#5e1f00;
--good:0,114,178;--bad:213,94,0}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1e2329;--ink:#e8ebee;--soft:#a6b0ba;
--line:#3a424b;--k0:#4aa3df;--k1:#f0b429;--k2:#2fc49a;--k3:#e39cc4;--k4:#8fd0f5;--k5:#ff8a4c;
--k6:#d9c94a;--k7:#b5b5b5;--u0:#3a424b;--u1:#8a5a1e;--u2:#c77a20;--u3:#f0a050;--u4:#ffe0b8;
--good:74,163,223;--bad:255,138,76}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:62rem;padding:1rem;background:var(--paper);color:var(--ink);
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.2;margin:.4rem 0 .8rem}
h2{font-size:1.25rem;margin:0 0 .6rem;padding-top:1rem;border-top:1px solid var(--line)}
section{margin:1.6rem 0}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:1rem 0}
a{color:var(--k0)}nav a{padding:.25rem 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem;
padding:0;margin:0;list-style:none}
.cards li{background:var(--card);border-radius:.5rem;padding:.6rem .8rem;color:var(--soft);
font-size:.9rem}
.cards b{display:block;font-size:1.5rem;line-height:1.25;color:var(--ink)}
dl{margin:0 0 1rem}dl div{display:flex;flex-wrap:wrap;gap:0 .8rem;padding:.25rem 0;
border-bottom:1px solid var(--line)}dt{color:var(--soft);flex:1 1 9rem}dd{margin:0;flex:2 1 10rem}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.92rem;min-width:min(100%,20rem)}
caption{text-align:left;color:var(--soft);padding:.3rem 0;font-size:.88rem}
th,td{padding:.3rem .7rem .3rem 0;text-align:left;border-bottom:1px solid var(--line);
vertical-align:top;max-width:22rem}
td,th{overflow-wrap:break-word}td.n{white-space:nowrap}
thead th{color:var(--soft);font-weight:600;vertical-align:bottom}tbody th{font-weight:600}
.n{text-align:right;font-variant-numeric:tabular-nums}
.confusion td.n{padding:.3rem .6rem;border:1px solid var(--line)}
.confusion thead th{text-align:right;padding:.3rem .6rem}
.good1{background:rgba(var(--good),.12)}.good2{background:rgba(var(--good),.22)}
.good3{background:rgba(var(--good),.32)}.good4{background:rgba(var(--good),.42)}
.bad1{background:rgba(var(--bad),.22)}.bad2{background:rgba(var(--bad),.32)}
.bad3{background:rgba(var(--bad),.42)}.bad4{background:rgba(var(--bad),.52)}
.caution{border-left:.3rem solid var(--k5);padding:.3rem .8rem;background:var(--card)}
body.wide{max-width:76rem}.wide table{font-size:.85rem}
figure{margin:1rem 0}.plot{background:#fff}.plot img{max-width:100%;height:auto;display:block}
figcaption{color:var(--soft);font-size:.92rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1rem}
.pair figure{margin:.4rem 0}
.chart{width:100%;height:auto;max-width:36rem;display:block}
.chart text{fill:var(--ink);font-size:13px;font-family:inherit}
.k0{fill:var(--k0)}.k1{fill:var(--k1)}.k2{fill:var(--k2)}.k3{fill:var(--k3)}.k4{fill:var(--k4)}
.k5{fill:var(--k5)}.k6{fill:var(--k6)}.k7{fill:var(--k7)}
.u0{fill:var(--u0)}.u1{fill:var(--u1)}.u2{fill:var(--u2)}.u3{fill:var(--u3)}.u4{fill:var(--u4)}
.paper{fill:var(--paper)}.dot{stroke:var(--paper);stroke-width:.5}
.edge{stroke:var(--soft);stroke-width:.5;opacity:.28;fill:none}
.ring{fill:none;stroke:var(--ink);stroke-width:1.2}
.grid{stroke:var(--line);stroke-width:1;fill:none}.axis{stroke:var(--soft);stroke-width:1;fill:none}
.mark{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 3;fill:none}
.disc{stroke:var(--k4);stroke-width:5;opacity:.65;fill:none}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem .9rem;padding:0;margin:.3rem 0}
.legend li{display:flex;align-items:center;gap:.3rem}.legend svg{width:1rem;height:1rem;flex:none}
pre{background:var(--card);padding:.7rem;border-radius:.5rem;overflow-x:auto;white-space:pre-wrap}
footer{color:var(--soft);font-size:.9rem;border-top:1px solid var(--line);margin-top:2rem}
a:focus-visible,.scroll:focus-visible,pre:focus-visible{
outline:2px solid var(--k0);outline-offset:2px}
@media(max-width:40rem){
.stacked,.stacked tbody,.stacked tr,.stacked td,.stacked th,.stacked caption{
display:block;max-width:none}
.stacked thead{display:none}
.stacked tr{border-bottom:1px solid var(--line);padding:.4rem 0}
.stacked td,.stacked th{border:0;display:flex;gap:.8rem;padding:.1rem 0;text-align:left}
.stacked td::before,.stacked th::before{content:attr(data-name);color:var(--soft);flex:0 0 9rem;
font-weight:400}}
@media print{nav{display:none}.scroll{overflow:visible}}
"""
