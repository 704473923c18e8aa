// What was measured, as the table that docs/benchmarks.md has.

/** Returns the value below which this share of the values is. */
export function quantile(values, share) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export const median = (values) => quantile(values, 0.5);
export const p95 = (values) => quantile(values, 0.95);
export const sum = (values) => values.reduce((all, one) => all + one, 0);

/** Writes a number with as many digits as say something. */
export const number = (value) => (Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toFixed(Math.abs(value) >= 10 ? 1 : 2))));
export const kilobytes = (bytes) => number(bytes / 1000);
/** The median and the extremes. */
export const spread = (values) => `${number(median(values))} [${number(Math.min(...values))} … ${number(Math.max(...values))}]`;

export class Table {
  #rows = [];

  /** A row without a target. */
  state(what, measured) {
    this.#add(what, measured, "", "");
  }

  /** A row with a target that is not to be exceeded. */
  atMost(what, value, most, unit, shown = number(value)) {
    this.#add(`${what}, ${unit}`, shown, `≤ ${number(most)}`, value <= most ? "met" : "**not met**");
  }

  #add(...cells) {
    this.#rows.push(cells);
    console.error(cells.join(" | "));
  }

  /** The part that was not measured, and why. */
  failed(part, error) {
    process.exitCode = 1;
    console.error(`FAILED  ${part}: ${error.stack}`);
    this.#rows.push([part, `failed: ${String(error.message).split("\n")[0].replaceAll("|", "/")}`, "", ""]);
  }

  toString() {
    return ["| What | Measured | Target | |", "|---|---|---|---|", ...this.#rows.map((cells) => `| ${cells.join(" | ")} |`)].join("\n");
  }
}
