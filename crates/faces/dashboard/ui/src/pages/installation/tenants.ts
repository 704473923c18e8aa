// What operators see of workspaces.

import { api, type Data, type Row } from "../../lib/api";
import { count, money, words } from "../../lib/format";
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

/** Returns the name of a plan. One that only operators can give is not in the catalogue. */
export function planName(catalogue: Data<"/billing/plans"> | undefined, plan: string): string {
  return catalogue?.find(({ id }) => id === plan)?.name ?? words(plan);
}

/** Proposes a workspace's name in addresses: `Panadería Sol` gives `panaderia-sol`. Names without Latin letters give nothing. */
export function slugOf(name: string): string {
  const plain = name.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const slug = (plain.match(/[a-z0-9]+/g) ?? []).join("-").slice(0, 40).replace(/-$/, "");
  return slug.replaceAll("-", "").length >= 3 && /[a-z]/.test(slug) ? slug : "";
}

/** Returns a plan in one line. */
export function planLine(plan: Data<"/billing/plans">[number]): string {
  return t.workspaces.planOption(plan.name, money(plan.price_cents, plan.currency), count(plan.included_energy));
}

/** Returns the moment that was chosen in a field of a local time. */
export function instant(local: string): string | undefined {
  return local ? new Date(local).toISOString() : undefined;
}
