// Who is who in the inbox: contacts by id, the members of the team, and the member who has signed in.

import { SvelteMap } from "svelte/reactivity";
import { api, type Row } from "../../lib/api";
import { session } from "../../lib/session.svelte";
import { t } from "../../text";
import { until } from "./times";
import type { Schemas } from "../../types/api";

export type Contact = Row<"/contacts">;
export type Conversation = Row<"/conversations">;
export type Message = Row<"/conversations/{conversationId}/messages">;
export type Member = Row<"/team">;
export type Channel = Row<"/channels">;

/** Who answers a contact now. */
export interface Answering {
  who: "agent" | "you" | "member" | "nobody" | "blocked";
  /** The name of the member. */
  name: string;
  /** When the agent answers again. */
  until: string | null;
}

/** A field of contacts, as people read it. */
export interface ContactField {
  label: string;
  choices: { key: string; label: string }[];
}

const AT_ONCE = 100;

export class People {
  contacts = new SvelteMap<number, Contact>();
  team = $state.raw<Member[]>([]);
  channels = $state.raw<Channel[]>([]);
  /** Whether it is known that no channel is connected. */
  hasNoChannel = $state(false);
  me = $state.raw<number>();
  /** The fields of contacts with their words. */
  fields = $state.raw<ReadonlyMap<string, ContactField>>(new Map());

  /** Reads the team, the channels and the fields. Without them, names are missing and all else works. */
  async load(signal: AbortSignal): Promise<void> {
    const parts = [this.own(signal), this.#loadTeam(signal), this.#loadChannels(signal), this.#loadFields(signal)];
    await Promise.allSettled(parts);
  }

  /** The member who has signed in. */
  async own(signal: AbortSignal): Promise<number> {
    return (this.me ??= (await api.get("/dashboard/me", { signal })).data.member_id);
  }

  async #loadTeam(signal: AbortSignal): Promise<void> {
    this.team = (await api.get("/team", { signal })).data;
  }

  async #loadChannels(signal: AbortSignal): Promise<void> {
    if (!session.can("channels:read")) return;
    this.channels = (await api.get("/channels", { signal })).data;
    this.hasNoChannel = this.channels.length === 0;
  }

  async #loadFields(signal: AbortSignal): Promise<void> {
    const system = (await api.get("/contacts/system-fields", { signal })).data;
    const own = session.can("variables:read") ? (await api.get("/variables/contact-fields", { signal })).data : [];
    const choices = (options: unknown) => (options as { choices?: ContactField["choices"] } | null)?.choices ?? [];
    this.fields = new Map([
      ...system.map((field): [string, ContactField] => [field.key, { label: field.label, choices: choices(field) }]),
      ...own.map((field): [string, ContactField] => [field.field_key, { label: field.label, choices: choices(field.options) }]),
    ]);
  }

  /** Reads contacts by their ids, in as few requests as can be. */
  async read(ids: readonly number[], signal?: AbortSignal): Promise<void> {
    const wanted = [...new Set(ids)];
    for (let at = 0; at < wanted.length; at += AT_ONCE) {
      const filter_tree = JSON.stringify({ field: "id", op: "in", value: wanted.slice(at, at + AT_ONCE) });
      const { data } = await api.get("/contacts", { query: { filter_tree, limit: AT_ONCE }, ...(signal && { signal }) });
      for (const contact of data) this.contacts.set(contact.id, contact);
    }
  }

  name(contact: number): string {
    const found = this.contacts.get(contact);
    return found?.name || found?.identities[0]?.value || t.inbox.unnamed;
  }

  member(id: number | string | null | undefined): Member | undefined {
    return this.team.find((member) => member.id === Number(id));
  }

  answering(conversation: Conversation): Answering {
    const contact = this.contacts.get(conversation.contact_id);
    if (contact?.status === "blocked") return { who: "blocked", name: "", until: null };
    if (contact ? contact.autopilot.enabled : conversation.handler === "agent") return { who: "agent", name: "", until: null };
    const paused = contact?.autopilot.paused_until ?? null;
    const assignee = contact ? contact.assignee?.id : conversation.assignee;
    if (assignee === undefined || assignee === null) return { who: "nobody", name: "", until: paused };
    if (assignee === this.me) return { who: "you", name: t.inbox.you, until: paused };
    return { who: "member", name: this.member(assignee)?.name ?? t.inbox.unnamed, until: paused };
  }
}

export const answeringTone = { agent: "none", you: "ok", member: "ok", nobody: "warn", blocked: "danger" } as const;

/** Who answers, as a sentence. */
export function sentence(answering: Answering, now: number): string {
  const texts = t.answering;
  const time = answering.until && until(answering.until, now);
  switch (answering.who) {
    case "agent": return texts.agent;
    case "you": return time ? texts.youUntil(time) : texts.you;
    case "member": return time ? texts.memberUntil(answering.name, time) : texts.member(answering.name);
    case "nobody": return time ? texts.nobodyUntil(time) : texts.nobody;
    case "blocked": return texts.blocked;
  }
}

/** Who answers, in a word or two. */
export function word(answering: Answering, now: number): string {
  const texts = t.answering;
  const time = answering.until && until(answering.until, now);
  switch (answering.who) {
    case "agent": return texts.agentShort;
    case "you":
    case "member": {
      const name = answering.name.split(" ")[0] ?? "";
      return time ? texts.until(name, time) : name;
    }
    case "nobody": return time ? texts.nobodyUntilShort(time) : texts.nobodyShort;
    case "blocked": return texts.blockedShort;
  }
}

export type SenderType = Schemas["MessageSenderType"];
