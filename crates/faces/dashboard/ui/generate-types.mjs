// Writes the types of all requests from the OpenAPI documents: a field that is renamed there is a type error here.
//
//   node generate-types.mjs REPOSITORY

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import openapiTypescript, { astToString } from "openapi-typescript";

const [repository = "../../../.."] = process.argv.slice(2);
const folder = join(import.meta.dirname, "src", "types");
mkdirSync(folder, { recursive: true });

const documents = ["public", "dashboard"].filter((name) => existsSync(join(repository, `openapi.${name}.json`)));
for (const name of documents) {
  const source = pathToFileURL(join(repository, `openapi.${name}.json`).replace(/^(?!\/)/, `${process.cwd()}/`));
  writeFileSync(join(folder, `${name}.ts`), astToString(await openapiTypescript(source, { alphabetize: true })));
}
const names = documents.map((name) => name[0].toUpperCase() + name.slice(1));
const imports = documents.map((name, at) => `import type { components as ${names[at]}Components, paths as ${names[at]}Paths } from "./${name}";`);
const both = (part) => names.map((name) => `${name}${part}`).join(" & ");
// A schema that several documents have is the same in all of them.
const schemas = names.reduceRight((rest, name) => {
  const own = `${name}Components["schemas"]`;
  return rest ? `${own} & Omit<${rest}, keyof ${own}>` : own;
}, "");
writeFileSync(join(folder, "api.ts"), `${imports.join("\n")}\n\nexport type paths = ${both("Paths")};\nexport type Schemas = ${schemas};\n`);
