// Times of conversations: short ones for rows, the time of the day for messages, and what is left of a window.

import { clockTime, hourCycle } from "../../lib/format";
import { locale, t } from "../../text";

const relative = new Intl.RelativeTimeFormat(locale, { numeric: "always", style: "narrow" });
const weekday = new Intl.DateTimeFormat(locale, { weekday: "short", hour: "numeric", minute: "2-digit", hourCycle });
const day = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long" });
const oldDay = new Intl.DateTimeFormat(locale, { day: "numeric", month: "long", year: "numeric" });
const units = new Intl.NumberFormat(locale, { style: "unit", unit: "hour", unitDisplay: "narrow" });
const minutes = new Intl.NumberFormat(locale, { style: "unit", unit: "minute", unitDisplay: "narrow" });

const DAY_MS = 86_400_000;

/** The age of a row: `3m ago`, `2d ago`. */
export function age(at: string, now: number): string {
  const past = Math.max(0, now - Date.parse(at));
  if (past < 60_000) return t.inbox.now;
  if (past < 3_600_000) return relative.format(-Math.floor(past / 60_000), "minute");
  if (past < DAY_MS) return relative.format(-Math.floor(past / 3_600_000), "hour");
  return relative.format(-Math.floor(past / DAY_MS), "day");
}

/** A time that is not far away: `15:30` today and in the next twelve hours, on another day `Mon 09:00`, in another week with the date. */
export function until(at: string, now: number): string {
  const date = new Date(at);
  const ahead = date.getTime() - now;
  if (date.toDateString() === new Date(now).toDateString() || (ahead > 0 && ahead < DAY_MS / 2)) return clockTime(at);
  if (Math.abs(ahead) < 6 * DAY_MS) return weekday.format(date);
  return oldDay.format(date);
}

/** The day of a message, or the key of the word for today and yesterday. */
export function dayName(at: string, now: number): string | "today" | "yesterday" {
  const date = new Date(at);
  if (date.toDateString() === new Date(now).toDateString()) return "today";
  if (date.toDateString() === new Date(now - DAY_MS).toDateString()) return "yesterday";
  return (now - date.getTime() < 180 * DAY_MS ? day : oldDay).format(date);
}

/** How long it is until then, rather less than too much: `5h 20m`. */
export function left(at: string, now: number): string {
  const all = Math.max(1, Math.floor((Date.parse(at) - now) / 60_000));
  const hours = Math.floor(all / 60);
  return hours > 0 ? `${units.format(hours)} ${minutes.format(all % 60)}` : minutes.format(all);
}
