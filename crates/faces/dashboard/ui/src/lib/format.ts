// Numbers, amounts and times as people read them.

import { locale } from "../text";

/** The clock of the browser, of 12 or 24 hours, which need not be that of the language of the texts. */
export const hourCycle = new Intl.DateTimeFormat(undefined, { hour: "numeric" }).resolvedOptions().hourCycle ?? "h23";

const number = new Intl.NumberFormat(locale);
const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "long" });
const absolute = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long", hourCycle });
const hour = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", hourCycle });
const time = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit", hourCycle });
const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" });

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function count(value: number): string {
  return number.format(value);
}

export function percent(share: number): string {
  return new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 }).format(share);
}

/** An amount in the smallest unit of its currency. */
export function money(cents: number, currency: string): string {
  const format = new Intl.NumberFormat(locale, { style: "currency", currency });
  return format.format(cents / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
}

/** An amount in millionths of a dollar, with as many digits as small amounts need. */
export function dollars(micros: number): string {
  const digits = micros !== 0 && Math.abs(micros) < 10_000 ? 6 : 2;
  return new Intl.NumberFormat(locale, { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: digits }).format(micros / 1e6);
}

export function ago(at: string, now: number): string {
  const seconds = (Date.parse(at) - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return relative.format(0, "second");
}

/** A moment with its zone. */
export function moment(at: string): string {
  return absolute.format(new Date(at));
}

/** The beginning of an hour, with its day. */
export function hourOf(at: string): string {
  return hour.format(new Date(at));
}

/** The time of the day. */
export function clockTime(at: string): string {
  return time.format(new Date(at));
}

/** A calendar day, `2026-11-28`. */
export function date(text: string): string {
  return day.format(new Date(`${text}T00:00:00Z`));
}

/** Returns a day this many days before today, in UTC, as the API counts days. */
export function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

/** Turns a code that has no text of its own into words: `agent_run` becomes “Agent run”. */
export function words(code: string): string {
  const text = code.replace(/[_.]+/g, " ");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** A size in bytes, in the unit that people read it in, from kilobytes on. */
export function bytes(size: number): string {
  const units = ["kilobyte", "megabyte", "gigabyte", "terabyte"];
  const at = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, size)) / 3) - 1));
  return new Intl.NumberFormat(locale, { style: "unit", unit: units[at] ?? "kilobyte", maximumFractionDigits: 1 }).format(size / 1000 ** (at + 1));
}

/** The name of a country, a language or a currency by its code: `ES` becomes “Spain”. A code without a name stays. */
export function named(type: "region" | "language" | "currency", code: string): string {
  try {
    return new Intl.DisplayNames(locale, { type, languageDisplay: "standard" }).of(code) ?? code;
  } catch {
    // What people and networks have stored need not be a code.
    return code;
  }
}
