// The names of what entries of the audit log are about, from the operations that the member may call.

import { api, type Row } from "../../lib/api";
import { moment, named, words } from "../../lib/format";
import { recognize } from "../../lib/ids";
import { Query } from "../../lib/query.svelte";
import { session } from "../../lib/session.svelte";
import { t } from "../../text";

type Entry = Row<"/dashboard/audit">;

/** A value of an entry: as people read it, or an id, which is shown short and can be copied. */
export interface Shown {
  text: string;
  isId: boolean;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const ENUMS = new Set(["env", "status", "reason", "purpose"]);

export class AuditNames {
  /** The accounts whose changes were seen since the page was opened: no operation lists the accounts of a workspace. */
  accounts = $state<Record<string, string>>({});
  /** The keys whose names were seen in entries: those of apps are in no list. */
  #apps = $state<Record<string, string>>({});
  #team = new Query(async (signal) => (session.can("conversations:read") ? (await api.get("/team", { signal })).data : []));
  #keys = new Query(async (signal) => (session.can("keys:manage") ? (await api.get("/dashboard/keys", { signal })).data : []));
  #channels = new Query(async (signal) => (session.can("channels:read") ? (await api.get("/channels", { signal })).data : []));
  #agents = new Query(async (signal) => (session.can("agents:read") ? (await api.get("/agents", { signal })).data : []));
  #plans = new Query(async (signal) => (await api.get("/billing/plans", { signal })).data);

  /** Learns the names that entries have. */
  learn(entries: readonly Entry[]): void {
    for (const { account_id, account_name, action, target, details } of entries) {
      if (account_id && account_name) this.accounts[account_id] = account_name;
      const name = isObject(details) ? details["name"] : undefined;
      if (typeof name === "string" && name && (action.startsWith("key.") || action.startsWith("app."))) this.#apps[target] = name;
    }
  }

  /** Returns the name of what was changed. */
  of({ action, target, details }: Entry): string | undefined {
    const own = isObject(details) && typeof details["name"] === "string" && details["name"] !== "" ? details["name"] : undefined;
    switch (action.split(".")[0]) {
      case "workspace": return session.place(Number(target))?.name ?? own;
      case "member":
      case "link": return this.member(target) ?? (this.#isRemoved(target) ? t.audit.removed(target) : undefined);
      case "channel": return this.#channels.data?.find(({ id }) => String(id) === target)?.name ?? own;
      case "account": return this.accounts[target];
      default: return this.#id(target) ?? own;
    }
  }

  /** Whether a number was that of a member who is in the team no more. */
  #isRemoved(id: string): boolean {
    return /^\d+$/.test(id) && session.can("conversations:read") && this.#team.data !== undefined;
  }

  member(id: string): string | undefined {
    return this.#team.data?.find((member) => String(member.id) === id)?.name;
  }

  /** Returns a value of the details as people read it. */
  show(field: string, value: unknown): Shown {
    if (value === undefined || value === null || value === "") return { text: t.none, isId: false };
    if (typeof value === "string") {
      const name = this.#id(value);
      if (name === undefined && recognize(value).some(({ kind }) => kind.prefix)) return { text: value, isId: true };
      if (name === undefined && /^acc_/.test(value)) return { text: value, isId: true };
    }
    return { text: this.#text(field, value), isId: false };
  }

  #text(field: string, value: unknown): string {
    if (Array.isArray(value)) return value.map((one) => this.#text(field, one)).join(", ") || t.none;
    if (typeof value === "boolean") return value ? t.audit.yes : t.audit.no;
    if (isObject(value)) return typeof value["type"] === "string" ? this.#actor(value["type"], value["id"]) : JSON.stringify(value);
    const text = String(value);
    if (field === "agent_id") return this.#agents.data?.find(({ id }) => id === value)?.name ?? text;
    if (field === "plan") return this.#plans.data?.find(({ id }) => id === value)?.name ?? words(text);
    if (field === "locale") return named("language", text);
    if (ENUMS.has(field) && /^[a-z_]+$/.test(text)) return words(text);
    if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return moment(text);
    return this.#id(text) ?? (t.team.roles as Record<string, string>)[text] ?? text;
  }

  #actor(type: string, id: unknown): string {
    return (typeof id === "string" || typeof id === "number" ? this.member(String(id)) : undefined) ?? words(type);
  }

  #id(id: string): string | undefined {
    return this.accounts[id] ?? this.#keys.data?.find((key) => key.id === id)?.name ?? this.#apps[id];
  }
}
