// Days and months of a calendar, as texts such as `2026-11-28`.

import { locale } from "../../../text";
import type { FieldDef } from "../fields/kinds";
import { wallTime } from "../fields/values";

const utc = (day: string) => new Date(`${day}T00:00:00Z`);
const text = (date: Date) => date.toISOString().slice(0, 10);
const named = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" });
const monthName = named({ month: "long", year: "numeric" });
const longDay = named({ weekday: "long", day: "numeric", month: "long" });
const weekday = named({ weekday: "short" });

export const plusDays = (day: string, days: number) => text(new Date(utc(day).getTime() + days * 86_400_000));
export const nameOfMonth = (month: string) => monthName.format(utc(`${month}-01`));
export const nameOfDay = (day: string) => longDay.format(utc(day));
export const nameOfWeekday = (day: string) => weekday.format(utc(day));

/** The month before or after another one. */
export function plusMonths(month: string, months: number): string {
  const date = utc(`${month}-01`);
  date.setUTCMonth(date.getUTCMonth() + months);
  return text(date).slice(0, 7);
}

/** Today where the browser is. */
export function today(): string {
  const now = new Date();
  return text(new Date(now.getTime() - now.getTimezoneOffset() * 60_000));
}

/** The day on which weeks begin where the browser is: 1 is Monday, 7 Sunday. */
function firstOfWeek(): number {
  try {
    const place = new Intl.Locale(navigator.language) as Intl.Locale & { getWeekInfo?: () => { firstDay: number }; weekInfo?: { firstDay: number } };
    return (place.getWeekInfo?.() ?? place.weekInfo)?.firstDay ?? 1;
  } catch {
    return 1;
  }
}

/** The weeks of a month, whole, with days of the months around it. */
export function weeksOf(month: string): string[][] {
  const first = `${month}-01`;
  const before = (utc(first).getUTCDay() - (firstOfWeek() % 7) + 7) % 7;
  const end = `${plusMonths(month, 1)}-01`;
  const weeks: string[][] = [];
  for (let day = plusDays(first, -before); day < end; day = plusDays(day, 7)) weeks.push(Array.from({ length: 7 }, (_, at) => plusDays(day, at)));
  return weeks;
}

/** The day of a value, in the zone of its field. */
export function dayOf(field: FieldDef, value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  return field.type === "date" ? value : wallTime(field.options.time_zone, value).slice(0, 10);
}

/** The time of day of a value. */
export function timeOf(field: FieldDef, value: unknown): string {
  return field.type === "date" || typeof value !== "string" ? "" : wallTime(field.options.time_zone, value).slice(11, 16);
}
