// What a person has typed about a key, and the requests that it becomes.

import type { Schemas } from "../../../types/api";

type Key = Schemas["WorkspaceKey"];
const DAY_MS = 86_400_000;

/** Returns a moment as the control for local times has it. */
export function toLocal(at: string | number): string {
  const moment = new Date(at);
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export class KeyDraft {
  name = $state("");
  env = $state<Schemas["Env"]>("live");
  scopes = $state.raw<ReadonlySet<string>>(new Set());
  rate = $state("");
  quota = $state("");
  budget = $state("");
  cutoff = $state(true);
  expiry = $state("");
  expiryAt = $state(toLocal(Date.now() + 30 * DAY_MS));

  constructor(key?: Key) {
    if (!key) return;
    this.name = key.name;
    this.env = key.env;
    this.scopes = new Set(key.scopes);
    this.rate = String(key.rate_limit_rpm ?? "");
    this.quota = String(key.monthly_quota ?? "");
    this.budget = key.budget ? (key.budget.cents / 100).toFixed(2).replace(/\.00$/, "") : "";
    this.cutoff = key.budget?.cutoff ?? true;
    if (key.expires_at) [this.expiry, this.expiryAt] = ["date", toLocal(key.expires_at)];
  }

  get badRate(): boolean {
    return !isWhole(this.rate);
  }
  get badQuota(): boolean {
    return !isWhole(this.quota);
  }
  get badBudget(): boolean {
    return !/^\d*([.,]\d{1,2})?$/.test(this.budget.trim());
  }
  get badTime(): boolean {
    return this.expiry === "date" && Number.isNaN(Date.parse(this.expiryAt));
  }
  get isBad(): boolean {
    return this.badRate || this.badQuota || this.badBudget || this.badTime;
  }

  get #cents(): number | undefined {
    const text = this.budget.trim().replace(",", ".");
    return text === "" ? undefined : Math.round(Number(text) * 100);
  }
  get #end(): string | undefined {
    if (this.expiry === "") return undefined;
    return (this.expiry === "date" ? new Date(this.expiryAt) : new Date(Date.now() + Number(this.expiry) * DAY_MS)).toISOString();
  }

  /** Returns the body that creates the key. */
  toNew(): Schemas["NewWorkspaceKey"] {
    const [rate, quota, cents, end] = [whole(this.rate), whole(this.quota), this.#cents, this.#end];
    return {
      name: this.name.trim(),
      env: this.env,
      scopes: [...this.scopes],
      ...(rate !== undefined && { rate_limit_rpm: rate }),
      ...(quota !== undefined && { monthly_quota: quota }),
      ...(cents !== undefined && { budget_cents: cents, budget_cutoff: this.cutoff }),
      ...(end !== undefined && { expires_at: end }),
    };
  }

  /** Returns the body that changes a key. What is as before is left out: an end that has passed could not be sent again. */
  toPatch(before: Key): Schemas["WorkspaceKeyPatch"] {
    const [rate, quota, cents, end] = [whole(this.rate) ?? null, whole(this.quota) ?? null, this.#cents ?? null, this.#end ?? null];
    const isSameEnd = this.expiry === "date" && before.expires_at !== null && this.expiryAt === toLocal(before.expires_at);
    return {
      ...(this.name.trim() !== before.name && { name: this.name.trim() }),
      ...(rate !== before.rate_limit_rpm && { rate_limit_rpm: rate }),
      ...(quota !== before.monthly_quota && { monthly_quota: quota }),
      ...(cents !== (before.budget?.cents ?? null) && { budget_cents: cents }),
      ...(cents !== null && this.cutoff !== (before.budget?.cutoff ?? false) && { budget_cutoff: this.cutoff }),
      ...(!isSameEnd && end !== before.expires_at && { expires_at: end }),
    };
  }
}

function isWhole(text: string): boolean {
  return /^\d*$/.test(text.trim());
}

function whole(text: string): number | undefined {
  return text.trim() === "" ? undefined : Number(text);
}
