// Conditions as a person edits them: an expression, or rules of which all or any must hold.

import { isObject } from "./schema";

export const operators = ["eq", "neq", "gt", "gte", "lt", "lte", "contains", "starts_with", "ends_with", "in", "not_in", "like", "ilike", "matches", "is_set", "is_empty", "before", "after", "within_days", "has_tag"] as const;
export type Operator = (typeof operators)[number];
export const isUnary = (op: unknown) => op === "is_set" || op === "is_empty";

export interface Rule {
  left: string;
  op: Operator;
  right?: unknown;
}

export interface Rules {
  join: "and" | "or";
  rules: Rule[];
}

function isRule(value: unknown): value is Rule {
  return isObject(value) && typeof value["left"] === "string" && operators.some((op) => op === value["op"]) && Object.keys(value).every((key) => key === "left" || key === "op" || key === "right");
}

/** Reads a condition as a flat list of rules. `undefined` if it is another one, such as an expression or a deeper tree. */
export function rulesOf(value: unknown): Rules | undefined {
  if (value === undefined || value === null) return { join: "and", rules: [] };
  if (isRule(value)) return { join: "and", rules: [value] };
  if (!isObject(value)) return undefined;
  for (const join of ["and", "or"] as const) {
    const parts = value[join];
    if (Object.keys(value).length === 1 && Array.isArray(parts) && parts.every(isRule)) return { join, rules: parts };
  }
  return undefined;
}

export function toCondition({ join, rules }: Rules): unknown {
  if (rules.length === 0) return undefined;
  return rules.length === 1 && join === "and" ? rules[0] : { [join]: rules };
}
