// Writes crates/foundation/calendar/tests/golden/cron.tsv: random cron expressions with their first moments by croner.
//
// usage: npm install --prefix D croner && node crates/foundation/calendar/tests/golden.mjs D
//
// Each line has an expression, a time zone, a start, and the first moments. Time zones are those without changes of the clock:
// where clocks change, croner and this crate follow different rules.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";

const { Cron } = createRequire(resolve(process.argv[2], "package.json"))("croner");

let seed = 7;
const random = (below) => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return Math.floor((seed / 2147483648) * below);
};
const number = (first, last) => first + random(last - first + 1);

function field(first, last, names) {
  const one = () => {
    const from = number(first, last);
    switch (random(names ? 5 : 4)) {
      case 0: return String(from);
      case 1: return `${from}-${number(from, last)}`;
      case 2: return `*/${number(2, Math.max(2, Math.floor((last - first) / 2)))}`;
      case 3: return `${from}-${number(from, last)}/${number(1, 5)}`;
      default: return names[random(names.length)];
    }
  };
  if (random(3) === 0) return "*";
  return random(4) === 0 ? `${one()},${one()}` : one();
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const ZONES = ["UTC", "Asia/Tokyo", "Asia/Kolkata", "America/Bogota"];
const lines = [];
while (lines.length < 600) {
  const days = field(1, 31), weekdays = field(0, 6, DAYS);
  // croner and Vixie cron differ in whether `*/2` makes both fields of days count.
  if (days.startsWith("*/") || weekdays.startsWith("*/")) continue;
  const expression = [field(0, 59), field(0, 23), days, field(1, 12, MONTHS), weekdays].join(" ");
  const zone = ZONES[random(ZONES.length)];
  const start = new Date(Date.UTC(2026 + random(10), random(12), 1 + random(28), random(24), random(60)));
  const cron = new Cron(expression, { timezone: zone, legacyMode: true });
  // croner looks for moments after a date.
  const found = cron.nextRuns(8, new Date(start.getTime() - 1000));
  if (found.length < 8) continue;
  lines.push([expression, zone, start.toISOString(), found.map((at) => at.toISOString()).join(",")].join("\t"));
}
writeFileSync(new URL("golden/cron.tsv", import.meta.url), lines.join("\n") + "\n");
