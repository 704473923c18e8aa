// The fields of contacts: those that every workspace has, those of its own, and what every contact shows.

import type { Row } from "../../lib/api";
import { marked } from "../../lib/marks";
import { t } from "../../text";
import type { Schemas } from "../../types/api";

export type Contact = Row<"/contacts">;
export type FieldType = Schemas["FieldType"];
export type Op = Schemas["Op"];

export interface Choice {
  key: string;
  label: string;
  archived: boolean;
}

export interface FieldDef {
  key: string;
  label: string;
  type: FieldType;
  choices: readonly Choice[];
  /** Whether other operations set the value. */
  isReadOnly: boolean;
  isOwn: boolean;
  description?: string;
  currency?: string;
  precision?: number;
  /** The number of stars of a rating. */
  max?: number;
  maxItems?: number;
}

/** What every contact shows besides its fields. */
const SHOWN: readonly FieldDef[] = [
  { key: "external_id", label: t.contacts.externalId, type: "text", choices: [], isReadOnly: false, isOwn: false },
  { key: "created_at", label: t.contacts.createdAt, type: "created_at", choices: [], isReadOnly: true, isOwn: false },
  { key: "updated_at", label: t.contacts.updatedAt, type: "updated_at", choices: [], isReadOnly: true, isOwn: false },
];

/** Returns all fields: the system's, those of the workspace, and what every contact shows. */
export function fieldsOf(system: readonly Schemas["ContactSystemField"][], own: readonly Schemas["ContactField"][]): FieldDef[] {
  return [
    ...system.map(({ key, label, type, read_only, choices }) => ({ key, label, type, choices, isReadOnly: read_only, isOwn: false })),
    ...own.filter(({ archived }) => !archived).map(({ field_key, label, type, description, options, system: isSet }): FieldDef => ({
      key: field_key, label, type, isReadOnly: isSet || type === "auto_number", isOwn: true,
      choices: (options.choices ?? []).map((choice) => ({ key: choice.key ?? "", label: choice.label, archived: choice.archived ?? false })),
      ...(description && { description }),
      ...(options.currency && { currency: options.currency }),
      ...(options.precision != null && { precision: options.precision }),
      ...(options.max != null && { max: options.max }),
      ...(options.max_items != null && { maxItems: options.max_items }),
    })),
    ...SHOWN,
  ];
}

/** Returns the value that a contact has of a field: `undefined` if it has none. */
export function valueOf(contact: Contact, key: string): unknown {
  switch (key) {
    case "$tags": return contact.tags.length ? contact.tags : undefined;
    case "$status": return contact.status;
    case "$assignee": return contact.assignee ? [contact.assignee.id] : undefined;
    case "$autopilot": return contact.autopilot.enabled;
    case "$opted_out": return contact.opted_out;
    case "$paused_until": return contact.autopilot.paused_until ?? undefined;
    case "external_id": return contact.external_id ?? undefined;
    case "created_at": return contact.created_at;
    case "updated_at": return contact.updated_at;
    default: return contact.data[key] ?? undefined;
  }
}

/** Whether two values are the same. */
export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}

const NUMBERS: readonly FieldType[] = ["number", "currency", "percent", "rating", "duration", "integer", "auto_number"];
const TIMES: readonly FieldType[] = ["datetime", "created_at", "updated_at"];

export const isNumber = (type: FieldType): boolean => NUMBERS.includes(type);
export const isTime = (type: FieldType): boolean => TIMES.includes(type);
export const hasChoices = (type: FieldType): boolean => type === "select" || type === "multi_select";

/** The name by which a contact is known: its name, else what identifies it. */
export function titleOf(contact: Contact): string {
  return contact.name.trim() || contact.identities[0]?.value || contact.external_id || t.contacts.nameless(contact.id);
}

/** Shows marks that nobody sees, and cuts what no row can hold. */
export function visible(text: string, longest = 400): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return marked(cut);
}

/** The columns of the grid until somebody chooses others. */
export function defaultColumns(fields: readonly FieldDef[]): string[] {
  const first = ["$stage", "$phone", "$email", "$company", "$tags", "$assignee"];
  const own = fields.filter(({ isOwn, type }) => isOwn && type !== "long_text" && type !== "json").map(({ key }) => key);
  return [...first, ...own.slice(0, 8), "created_at"].filter((key) => fields.some((field) => field.key === key));
}
