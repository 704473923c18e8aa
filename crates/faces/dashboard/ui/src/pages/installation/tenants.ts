// What operators see of workspaces.

import { api, type Data, type Row } from "../../lib/api";
import { count, money } from "../../lib/format";
import { t } from "../../text";

export type Tenant = Row<"/dashboard/workspaces">;

/** Returns the state of a workspace: its tone, and its word among the texts. */
export function stateOf(tenant: Tenant): { tone: "ok" | "warn" | "danger"; word: "active" | "blocked" | "noPlan" } {
  if (tenant.blocked_reason !== null) return { tone: "danger", word: "blocked" };
  return tenant.plan === null ? { tone: "warn", word: "noPlan" } : { tone: "ok", word: "active" };
}

/** Reads the plans that can be given. */
export async function plans(signal: AbortSignal): Promise<Data<"/billing/plans">> {
  return (await api.get("/billing/plans", { signal })).data;
}

/** Returns a plan in one line. */
export function planLine(plan: Data<"/billing/plans">[number]): string {
  return t.workspaces.planOption(plan.name, money(plan.price_cents, plan.currency), count(plan.included_energy));
}

/** Returns the moment that was chosen in a field of a local time. */
export function instant(local: string): string | undefined {
  return local ? new Date(local).toISOString() : undefined;
}
