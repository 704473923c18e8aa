// Texts are one typed object, `t`, in which all pages find theirs. This plugin of the build makes each module load only the files of
// `src/text/en` that it uses: `t.collections.create` in a page becomes `collections.collections.create` of the module `text/en/collections`.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("./src/text/en/", import.meta.url));
const IMPORT = /import\s*\{([^}]*)\}\s*from\s*(["'])(?:\.{1,2}\/)+text\2;?/;

/** The files of texts. */
export const textAreas = () => readdirSync(FOLDER).map((file) => file.slice(0, -".ts".length)).filter((area) => area !== "index");

/** Returns for each name of `t` the file that has it. */
function owners() {
  const found = new Map();
  for (const file of readdirSync(FOLDER)) {
    const area = file.slice(0, -".ts".length);
    const [, body] = readFileSync(FOLDER + file, "utf8").match(/export const \w+ = \{\n([\s\S]*?)\n\}/) ?? [];
    for (const [, name] of body?.matchAll(/^ {2}(\w+)(?=[:,(])/gm) ?? []) found.set(name, area);
  }
  return found;
}

/** Returns the places where `t` stands in front of a name, and calls `other` for all other uses. */
function uses(node, other, parent, found = []) {
  if (Array.isArray(node)) for (const one of node) uses(one, other, parent, found);
  else if (node && typeof node === "object" && typeof node.type === "string") {
    if (node.type === "Identifier" && node.name === "t") {
      const isName = (parent.type === "MemberExpression" && parent.property === node && !parent.computed) || (parent.type === "Property" && parent.key === node && !parent.computed && !parent.shorthand);
      if (parent.type === "MemberExpression" && parent.object === node && !parent.computed) found.push({ start: node.start, end: node.end, name: parent.property.name });
      else if (!isName && parent.type !== "ImportSpecifier") other();
    }
    for (const [key, value] of Object.entries(node)) if (key !== "parent" && typeof value === "object") uses(value, other, node, found);
  }
  return found;
}

export function splitText() {
  const areas = owners();
  return {
    name: "split-text",
    apply: "build",
    transform(code, id) {
      const imported = code.match(IMPORT);
      if (!imported || id.includes("/src/text")) return undefined;
      const places = uses(this.parse(code), () => this.error(`${id}: t is used without a name of its texts`), {});
      const wanted = new Set();
      let made = code;
      for (const { start, end, name } of places.toReversed()) {
        const area = areas.get(name);
        if (!area) this.error(`${id}: no file of src/text/en has ${name}`);
        wanted.add(area);
        made = `${made.slice(0, start)}text_${area}${made.slice(end)}`;
      }
      const lines = [...wanted].map((area) => `import { ${area} as text_${area} } from ${JSON.stringify(`${FOLDER}${area}.ts`)};`);
      if (/\blocale\b/.test(imported[1])) lines.push(`import { locale } from ${JSON.stringify(`${FOLDER.slice(0, -"en/".length)}locale.ts`)};`);
      return { code: made.replace(IMPORT, lines.join(" ")), map: null };
    },
  };
}
