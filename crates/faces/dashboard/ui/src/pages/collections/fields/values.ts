// Values as people read and write them.

import { count, date, hourCycle, words } from "../../../lib/format";
import { locale, t } from "../../../text";
import { kinds, resultOf, type FieldDef, type Item } from "./kinds";

/** Something with a name that a value refers to. */
export interface Named {
  key: string;
  label: string;
  color?: string | null;
  /** Below the name, to tell two of the same name apart. */
  note?: string | undefined;
}

const times = new Map<string, Intl.DateTimeFormat>();

/** A time in the zone of its field, as the service reads and counts it. */
export function timeIn(zone: string | null | undefined, at: string): string {
  const name = zone ?? "UTC";
  let format = times.get(name);
  if (!format) times.set(name, (format = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short", hourCycle, timeZone: name })));
  return format.format(new Date(at));
}

/** The text of `<input type="datetime-local">` for a time in a zone. */
export function wallTime(zone: string | null | undefined, at: string): string {
  const parts = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zone ?? "UTC" }).format(new Date(at));
  return parts.replace(" ", "T").replace(/:00$/, "");
}

/** Seconds as `1:30:05`. */
export function duration(seconds: number): string {
  const rest = Math.abs(seconds);
  const [hours, minutes, left] = [Math.floor(rest / 3600), Math.floor(rest / 60) % 60, rest % 60];
  const two = (part: number) => String(part).padStart(2, "0");
  return `${seconds < 0 ? "−" : ""}${hours}:${two(minutes)}${left ? `:${left < 10 ? "0" : ""}${left}` : ""}`;
}

/** Reads `1:30`, `1:30:05`, or minutes. Returns the text if it is none of them, which the service then refuses. */
export function parseDuration(text: string): number | string {
  const found = /^(-)?(\d+)(?::(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?)?$/.exec(text.trim().replace("−", "-"));
  if (!found) return text;
  const [, minus, first = "0", second, third] = found;
  const seconds = second === undefined ? Number(first) * 60 : Number(first) * 3600 + Number(second) * 60 + Number(third ?? 0);
  return minus ? -seconds : seconds;
}

/** Reads a number. Returns the text if it is none, which the service then refuses. */
export function parseNumber(text: string): number | string | null {
  const plain = text.trim();
  return plain === "" ? null : /^[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain.replace(",", ".")) : plain;
}

const currencies = new Map<string, Intl.NumberFormat>();

/** An amount in whole units of its currency, with the digits that it has. */
export function amount(value: number, currency: string, precision: number | null | undefined): string {
  const name = `${currency}/${precision}`;
  let format = currencies.get(name);
  if (!format) currencies.set(name, (format = new Intl.NumberFormat(locale, { style: "currency", currency, ...(precision === null || precision === undefined ? { maximumFractionDigits: 8 } : { minimumFractionDigits: precision, maximumFractionDigits: precision }) })));
  return format.format(value);
}

const plain = new Intl.NumberFormat(locale, { maximumFractionDigits: 15 });

export const isNumeric = (field: FieldDef) => kinds[resultOf(field)].isNumber === true;

/** A value as one line of text. */
export function textOf(field: FieldDef, value: unknown): string {
  if (value === null || value === undefined) return "";
  const { options } = field;
  switch (resultOf(field)) {
    case "currency":
      return typeof value === "number" ? amount(value, options.currency ?? "EUR", options.precision) : String(value);
    case "number":
      return typeof value === "number" ? (options.precision ? value.toFixed(options.precision) : plain.format(value)) : String(value);
    case "percent":
      return `${plain.format(Number(value))} %`;
    case "integer":
      return plain.format(Number(value));
    case "auto_number":
      return String(value);
    case "duration":
      return duration(Number(value));
    case "rating":
      return `${count(Number(value))} / ${count(options.max ?? 5)}`;
    case "boolean":
      return value === true ? t.cells.yes : t.cells.no;
    case "date":
      return date(String(value));
    case "datetime":
    case "created_at":
    case "updated_at":
      return timeIn(options.time_zone, String(value));
    case "created_by":
      return actorText(String(value));
    case "select":
      return choice(field, String(value)).label;
    case "multi_select":
    case "tags":
      return Array.isArray(value) ? value.map((key) => choice(field, String(key)).label).join(", ") : String(value);
    case "json":
      return JSON.stringify(value);
    default:
      return Array.isArray(value) ? value.map((one) => (typeof one === "object" ? JSON.stringify(one) : `#${one}`)).join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value);
  }
}

/** The choice of a key. Choices that were deleted are shown by their keys. */
export function choice(field: FieldDef, key: string): Named {
  const found = field.options.choices?.find((one) => one.key === key);
  return { key, label: found?.label ?? key, color: found?.color ?? null };
}

/** `user:5` as words. */
export function actorText(text: string): string {
  const at = text.indexOf(":");
  const [type, id] = at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
  return `${(t.events.actors as Record<string, string>)[type] ?? words(type)} ${id.length > 16 ? `…${id.slice(-4)}` : id}`.trim();
}

/** The objects that an item refers to by a field, with their names where they are known. */
export function objects(item: Pick<Item, "data" | "expanded">, field: FieldDef): Named[] {
  const ids = item.data[field.field_key];
  if (!Array.isArray(ids)) return [];
  const known = (item.expanded as Record<string, Record<string, unknown>[]> | undefined)?.[field.field_key] ?? [];
  return ids.map((id) => {
    const found = known.find((one) => one["id"] === id);
    return { key: String(id), label: found ? nameOf(found, id) : `#${String(id)}` };
  });
}

/** The name of an item, contact, member or file. */
export function nameOf(object: Record<string, unknown>, id: unknown): string {
  const name = object["title"] ?? object["name"];
  return typeof name === "string" && name !== "" ? name : `#${String(id)}`;
}

/** The ids of choices and objects as the service takes them. */
export const isSame = (one: unknown, other: unknown) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
