import { locale } from "../../../text";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;

/** A number of bytes with its unit. */
export function size(bytes: number): string {
  const at = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return new Intl.NumberFormat(locale, { style: "unit", unit: UNITS[at] ?? "byte", unitDisplay: "short", maximumFractionDigits: at ? 1 : 0 }).format(bytes / 1000 ** at);
}
