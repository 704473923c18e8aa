// Writes the types of all requests from the OpenAPI documents: a field that is renamed there is a type error here. Forms that
// are made of schemas, such as the settings of a node, get the schemas themselves, and the table of nodes of docs/flow-nodes.md.
//
//   node generate-types.mjs REPOSITORY

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

const contract = JSON.parse(readFileSync(join(repository, "openapi.public.json"), "utf8")).components.schemas;

/** Returns a schema with the schemas that it names in their places. */
function resolved(schema) {
  if (Array.isArray(schema)) return schema.map(resolved);
  if (schema === null || typeof schema !== "object") return schema;
  const { $ref, examples: _, ...rest } = schema;
  const named = $ref ? resolved(contract[$ref.replace("#/components/schemas/", "")]) : {};
  // The description of a choice explains its values, that of its place says what is chosen.
  if (named.enum) named["x-values"] = named.description;
  return { ...named, ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, resolved(value)])) };
}

const guide = readFileSync(join(repository, "docs", "flow-nodes.md"), "utf8");
const rows = [...guide.matchAll(/^\| \[`(\w+)`\]\(#\w+\) \| (\w+) \| (?:`([\w:]+)`)? ?\| (.*) \|$/gm)];
const nodeKinds = rows.map(([, type, work, scope, text]) => {
  const part = guide.split(`\n## ${type}\n`)[1].split("\n## ")[0];
  const [, ports] = part.match(/^Ports: (.*)\.$/m);
  const [, portsFrom] = ports.match(/the `id` of each of its `(\w+)`/) ?? [];
  const fixed = [...ports.replace(/the `id`.*/, "").matchAll(/`(\w+)`/g)].map(([, port]) => port);
  return { type, work, scope: scope ?? null, text, ports: fixed, portsFrom: portsFrom ?? null, isAvailable: !part.includes("The service has no ") };
});
const types = contract.FlowNodeType.enum;
const nodeSchemas = Object.fromEntries(types.map((type) => [type, resolved(contract.FlowNodeConfig["x-schema-by-type"][type])]));
if (nodeKinds.length !== types.length || nodeKinds.some(({ type }) => !nodeSchemas[type])) throw new Error("docs/flow-nodes.md has other nodes than openapi.public.json: run make openapi");
const forms = Object.fromEntries(["FlowNode", "FlowSettings", "FlowVariable", "AutomationPolicy", "NewAutomation"].map((name) => [name, resolved(contract[name])]));
// The drawing of a flow needs the kinds of its nodes, and only forms need the schemas, which are ten times as long.
writeFileSync(join(folder, "nodes.ts"), `export const nodeKinds: unknown = ${JSON.stringify(nodeKinds)};\n`);
writeFileSync(join(folder, "forms.ts"), `export const nodeSchemas: unknown = ${JSON.stringify(nodeSchemas)};\nexport const forms: unknown = ${JSON.stringify(forms)};\n`);
