// The business profile as it is edited, and what of it has changed.

import type { Schemas } from "../../types/api";

type Profile = Schemas["BusinessProfile"];
export const TEXTS = ["legal_name", "description", "time_zone", "currency", "locale", "country", "address", "email", "phone", "website"] as const;

export interface Draft {
  name: string;
  vertical: Schemas["Vertical"] | "";
  texts: Record<(typeof TEXTS)[number], string>;
  hours: { day: Schemas["Weekday"]; open: string; close: string }[];
  holidays: { date: string; name: string; yearly: boolean }[];
  messagesDays: string;
  filesDays: string;
}

export function draftOf(profile: Profile): Draft {
  return {
    name: profile.name,
    vertical: profile.vertical ?? "",
    texts: Object.fromEntries(TEXTS.map((field) => [field, profile[field] ?? ""])) as Draft["texts"],
    hours: profile.hours.map(({ day, open, close }) => ({ day, open, close })),
    holidays: profile.holidays.map(({ date, name, yearly }) => ({ date, name: name ?? "", yearly: yearly ?? false })),
    messagesDays: String(profile.retention.messages_days ?? ""),
    filesDays: String(profile.retention.files_days ?? ""),
  };
}

/** Returns the fields that differ, `null` for those that were emptied. */
export function changes(before: Draft, after: Draft): Schemas["BusinessPatch"] {
  const patch: Schemas["BusinessPatch"] = {};
  if (after.name.trim() !== before.name) patch.name = after.name.trim() || null;
  if (after.vertical !== before.vertical) patch.vertical = after.vertical || null;
  for (const field of TEXTS) {
    if (after.texts[field].trim() !== before.texts[field]) patch[field] = after.texts[field].trim() || null;
  }
  if (JSON.stringify(after.hours) !== JSON.stringify(before.hours)) patch.hours = after.hours.length ? after.hours : null;
  if (JSON.stringify(after.holidays) !== JSON.stringify(before.holidays)) {
    patch.holidays = after.holidays.length ? after.holidays.map(({ date, name, yearly }) => ({ date, yearly, ...(name.trim() && { name: name.trim() }) })) : null;
  }
  const days = (text: string) => (text === "" ? null : Number(text));
  const retention: Schemas["BusinessRetentionPatch"] = {};
  if (after.messagesDays !== before.messagesDays) retention.messages_days = days(after.messagesDays);
  if (after.filesDays !== before.filesDays) retention.files_days = days(after.filesDays);
  if (Object.keys(retention).length) patch.retention = retention;
  return patch;
}
