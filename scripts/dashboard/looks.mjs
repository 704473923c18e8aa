// What a reader or a browser changes on every page: a longer language, wider text, the colours of the system.

// Endings of words, which make a text longer without making it unlike one.
const ENDINGS = ["en", "ung", "lich", "keit", "erei", "ation"];
const SHARE = 0.4;

/** Makes a text about 40 % longer. Its words keep their order, and what is no word stays. */
export function lengthenText(text) {
  const letters = text.match(/\p{L}{3,}/gu)?.join("").length ?? 0;
  let due = Math.ceil(text.length * SHARE);
  let at = text.length;
  return text.replaceAll(/\p{L}{3,}/gu, (word) => {
    let longer = word;
    for (const wanted = Math.round((word.length / letters) * text.length * SHARE); longer.length - word.length < wanted && due > 0; ) {
      const ending = ENDINGS[at++ % ENDINGS.length].slice(0, Math.max(1, due));
      longer += ending;
      due -= ending.length;
    }
    return longer;
  });
}

/** Makes each text of a built file of texts longer. Between backticks it has texts only: names have quotes or none. */
export function lengthenTexts(source) {
  let longer = "";
  // Whether a position is in a text, for each level of placeholders.
  const levels = [];
  let text = "";
  const flush = () => {
    longer += lengthenText(text);
    text = "";
  };
  for (let at = 0; at < source.length; at++) {
    const char = source[at];
    if (levels.at(-1) === "text") {
      if (char === "\\") text += char + source[++at];
      else if (char === "`") { flush(); longer += char; levels.pop(); }
      else if (char === "$" && source[at + 1] === "{") { flush(); longer += "${"; at++; levels.push("code"); }
      else text += char;
    } else {
      longer += char;
      if (char === "`") levels.push("text");
      else if (char === "{") levels.push("code");
      else if (char === "}") levels.pop();
    }
  }
  return longer;
}

/** Serves the dashboard in a generated language that is 40 % longer than English. */
export async function speakLonger({ context }) {
  await context.route("**/assets/**/text-*.js", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: lengthenTexts(await answer.text()) });
  });
}

/** Spaces all text as WCAG 1.4.12 lets a reader do. A constructed sheet is what the policy of the pages allows. */
export async function spaceText({ page }) {
  await page.addInitScript(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; } p { margin-bottom: 2em !important; }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  });
}
