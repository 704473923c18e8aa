// The filter that a person builds, and the tree that the API takes.

import { hasChoices, isNumber, isTime, type FieldDef, type FieldType, type Op } from "../fields";

/** What a person chooses. Each is one operator of the API with a form of its value. */
export type Test =
  | "is" | "isNot" | "contains" | "lacks" | "starts" | "ends" | "matches" | "matchesCase" | "more" | "atLeast" | "less" | "atMost" | "anyOf" | "empty" | "filled";

export interface Condition {
  field: string;
  test: Test;
  /** As it is typed; of `anyOf`, one a line. */
  value: string;
}
export interface Group {
  join: "all" | "any" | "none";
  parts: (Condition | Group)[];
}

interface Leaf {
  field: string;
  op: Op;
  value?: unknown;
}
export type Tree = Leaf | { and: Tree[] } | { or: Tree[] } | { not: Tree };

const OPERATORS: Record<Test, Op> = {
  is: "eq", isNot: "neq", contains: "ilike", lacks: "ilike", starts: "ilike", ends: "ilike", matches: "ilike", matchesCase: "like",
  more: "gt", atLeast: "gte", less: "lt", atMost: "lte", anyOf: "in", empty: "eq", filled: "neq",
};
const TEXTS: readonly Test[] = ["contains", "lacks", "starts", "ends", "matches", "matchesCase"];
const RANGES: readonly Test[] = ["more", "atLeast", "less", "atMost"];
const LISTS: readonly FieldType[] = ["multi_select", "tags", "user", "contact", "file", "relation"];

export const isGroup = (part: Condition | Group): part is Group => "join" in part;
export const needsValue = (test: Test): boolean => test !== "empty" && test !== "filled";

/** Returns the tests of a type, from the operators that the API publishes for it. */
export function testsOf(type: FieldType, operators: ReadonlyMap<string, readonly Op[]>): Test[] {
  const ops = operators.get(type) ?? ["eq", "neq"];
  const isText = !isNumber(type) && !isTime(type) && type !== "date" && type !== "select";
  return (Object.keys(OPERATORS) as Test[]).filter((test) => {
    if (!ops.includes(OPERATORS[test])) return false;
    // Parts of days and of the keys of choices are asked for by nobody.
    return TEXTS.includes(test) ? isText : true;
  }).sort((one, other) => rank(one, type) - rank(other, type));
}

// The most usual test of a type comes first.
function rank(test: Test, type: FieldType): number {
  const order: Test[] = isNumber(type) || isTime(type) || type === "date" || type === "time"
    ? ["is", "isNot", ...RANGES, "anyOf", "empty", "filled"]
    : hasChoices(type) || LISTS.includes(type) || type === "boolean"
      ? ["is", "isNot", "anyOf", "empty", "filled", ...RANGES]
      : ["contains", "lacks", "is", "isNot", "starts", "ends", "anyOf", "empty", "filled", "matches", "matchesCase", ...RANGES];
  return order.indexOf(test);
}

const escaped = (text: string) => text.replace(/[\\%_]/g, "\\$&");
const plain = (text: string) => text.replace(/\\([\\%_])/g, "$1");
const isPlain = (text: string) => !/(^|[^\\])(\\\\)*[%_]/.test(text);

function typed(text: string, type: FieldType | undefined): unknown {
  const value = text.trim();
  if (type === "boolean") return value === "true";
  if (type !== undefined && (isNumber(type) || ["user", "contact", "file", "relation"].includes(type)) && value !== "" && Number.isFinite(Number(value))) return Number(value);
  return value;
}

function conditionTree({ field, test, value }: Condition, type: FieldType | undefined): Tree {
  const op = OPERATORS[test];
  if (!needsValue(test)) return { field, op, value: null };
  if (test === "anyOf") return { field, op, value: value.split("\n").filter((line) => line.trim() !== "").map((line) => typed(line, type)) };
  if (test === "contains" || test === "lacks") {
    const tree: Tree = { field, op, value: `%${escaped(value)}%` };
    return test === "lacks" ? { not: tree } : tree;
  }
  if (test === "starts") return { field, op, value: `${escaped(value)}%` };
  if (test === "ends") return { field, op, value: `%${escaped(value)}` };
  return { field, op, value: test === "matches" || test === "matchesCase" ? value : typed(value, type) };
}

/** Whether a condition says enough to be asked. */
export const isComplete = (part: Condition): boolean => part.field !== "" && (!needsValue(part.test) || part.value.trim() !== "");

/** Returns the tree of a group, or `undefined` if nothing in it says enough. */
export function treeOf(group: Group, fields: readonly FieldDef[]): Tree | undefined {
  const parts = group.parts.flatMap((part): Tree[] => {
    if (isGroup(part)) {
      const tree = treeOf(part, fields);
      return tree ? [tree] : [];
    }
    return isComplete(part) ? [conditionTree(part, fields.find(({ key }) => key === part.field)?.type)] : [];
  });
  if (parts.length === 0) return undefined;
  if (group.join === "all") return { and: parts };
  return group.join === "any" ? { or: parts } : { not: { or: parts } };
}

function conditionOf(tree: Leaf): Condition {
  const { field, op } = tree;
  const value = tree.value ?? null;
  const text = Array.isArray(value) ? value.join("\n") : String(value ?? "");
  if (value === null) return { field, test: op === "neq" ? "filled" : "empty", value: "" };
  if (op === "ilike") {
    const inner = /^%([^]*)%$/.exec(text)?.[1];
    if (inner !== undefined && isPlain(inner)) return { field, test: "contains", value: plain(inner) };
    const start = /^([^]*)%$/.exec(text)?.[1];
    if (start !== undefined && isPlain(start)) return { field, test: "starts", value: plain(start) };
    const end = /^%([^]*)$/.exec(text)?.[1];
    if (end !== undefined && isPlain(end)) return { field, test: "ends", value: plain(end) };
    return { field, test: "matches", value: text };
  }
  const tests: Partial<Record<Op, Test>> = { eq: "is", neq: "isNot", gt: "more", gte: "atLeast", lt: "less", lte: "atMost", in: "anyOf", like: "matchesCase" };
  return { field, test: tests[op] ?? "is", value: text };
}

function partOf(tree: Tree): Condition | Group {
  if ("and" in tree) return { join: "all", parts: tree.and.map(partOf) };
  if ("or" in tree) return { join: "any", parts: tree.or.map(partOf) };
  if ("not" in tree) {
    const inner = tree.not;
    if ("field" in inner) {
      const condition = conditionOf(inner);
      return condition.test === "contains" ? { ...condition, test: "lacks" } : { join: "none", parts: [condition] };
    }
    return { join: "none", parts: "or" in inner ? inner.or.map(partOf) : [partOf(inner)] };
  }
  return conditionOf(tree);
}

/** Returns the group that a person can change. */
export function groupOf(tree: Tree | undefined): Group {
  if (!tree) return { join: "all", parts: [] };
  const part = partOf(tree);
  return isGroup(part) ? part : { join: "all", parts: [part] };
}

/** Reads the tree of an address. One that is damaged is none. */
export function parseTree(text: string): Tree | undefined {
  if (!text) return undefined;
  try {
    const tree = JSON.parse(text) as Tree;
    groupOf(tree);
    return tree;
  } catch {
    return undefined;
  }
}

/** The conditions of a tree. */
export function countOf(group: Group): number {
  return group.parts.reduce((sum, part) => sum + (isGroup(part) ? countOf(part) : 1), 0);
}
