// What changed between two versions of an agent.

import type { Data } from "../../lib/api";

export type Version = Data<"/agents/{agentId}/versions/{version}">;
/** What is compared: a version, or an agent as it is. */
export type Comparable = Pick<Version, (typeof FIELDS)[number] | "tools">;
export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
}
/** A field that differs. `name` is a field of the settings, or a tool. */
export interface Change {
  name: string;
  isTool: boolean;
  lines: Line[];
}

const FIELDS = ["name", "description", "instructions", "model", "temperature", "max_output_tokens", "max_steps", "max_tool_calls", "timeout_seconds", "energy_limit_per_run", "energy_limit_monthly", "memory", "response_format", "guardrails", "reply", "handoff", "fallback_message", "skills"] as const;
/** Beyond this many pairs of lines, the text is compared as a whole. */
const MOST_PAIRS = 4_000_000;

const written = (value: unknown): string => (value === null || value === undefined ? "" : typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value, null, 2) : String(value));
const split = (text: string): string[] => (text === "" ? [] : text.split("\n"));

/** Returns the lines of two texts, with those that only one of them has: by the longest common subsequence. */
export function compare(before: string, after: string): Line[] {
  const [old, fresh] = [split(before), split(after)];
  if (old.length * fresh.length > MOST_PAIRS) return [...old.map((text) => ({ kind: "removed" as const, text })), ...fresh.map((text) => ({ kind: "added" as const, text }))];
  const width = fresh.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  const at = (row: number, column: number) => longest[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = fresh.length - 1; column >= 0; column--) {
      longest[row * width + column] = old[row] === fresh[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: Line[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < fresh.length) {
    if (row < old.length && column < fresh.length && old[row] === fresh[column]) {
      lines.push({ kind: "same", text: old[row++] ?? "" });
      column++;
    } else if (column >= fresh.length || (row < old.length && at(row + 1, column) >= at(row, column + 1))) lines.push({ kind: "removed", text: old[row++] ?? "" });
    else lines.push({ kind: "added", text: fresh[column++] ?? "" });
  }
  return lines;
}

// The times of a tool, and what follows from its settings, are not changes of it.
function tools(version: Comparable): Map<string, string> {
  return new Map(version.tools.map(({ created_at: _created, updated_at: _updated, agent_id: _agent, object: _object, functions: _functions, token_estimate: _tokens, id: _id, ...rest }) => [rest.name, written(rest)]));
}

/** Returns what differs, in the order of the settings, then the tools by name. */
export function differences(before: Comparable, after: Comparable): Change[] {
  const changes: Change[] = [];
  const put = (name: string, isTool: boolean, old: string, fresh: string) => {
    if (old !== fresh) changes.push({ name, isTool, lines: compare(old, fresh) });
  };
  for (const field of FIELDS) put(field, false, written(before[field]), written(after[field]));
  const [old, fresh] = [tools(before), tools(after)];
  for (const name of [...new Set([...old.keys(), ...fresh.keys()])].sort()) put(name, true, old.get(name) ?? "", fresh.get(name) ?? "");
  return changes;
}
