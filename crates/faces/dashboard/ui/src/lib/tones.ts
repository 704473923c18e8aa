// How a state is meant: well, to be looked at, broken, neither.

import type { Schemas } from "../types/api";

type Tone = "ok" | "warn" | "danger" | "none";

export const runTone: Record<Schemas["RunStatus"], Tone> = {
  queued: "none", in_progress: "none", requires_action: "warn", completed: "ok", incomplete: "warn", failed: "danger", cancelled: "none", expired: "warn",
};
export const channelTone: Record<Schemas["ChannelStatus"], Tone> = { connecting: "none", connected: "ok", degraded: "warn", disconnected: "danger", disabled: "none" };
export const deliveryTone: Record<Schemas["DeliveryStatus"], Tone> = { pending: "none", delivering: "none", succeeded: "ok", failed: "danger", skipped: "none" };
export const energyTone: Record<Schemas["EnergyState"], Tone> = { ok: "ok", low: "warn", depleted: "danger" };
export const invoiceTone: Record<Schemas["InvoiceStatus"], Tone> = { draft: "none", open: "warn", paid: "ok", void: "none", uncollectible: "danger" };
export const subscriptionTone: Record<Schemas["SubscriptionStatus"], Tone> = {
  active: "ok", trialing: "ok", sponsored: "ok", past_due: "warn", canceled: "danger", inactive: "danger", energy_depleted: "danger",
};
export const availabilityTone: Record<Schemas["AvailabilityStatus"], Tone> = { online: "ok", away: "warn", offline: "none" };

/** The state of an endpoint in one word of the texts. */
export function endpointState(endpoint: Schemas["WebhookEndpoint"]): { tone: Tone; word: "disabled" | "failing" | "paused" | "enabled" } {
  if (endpoint.status === "disabled") return { tone: endpoint.disabled_reason === "manual" ? "none" : "danger", word: "disabled" };
  if (endpoint.paused_until !== null) return { tone: "warn", word: "paused" };
  if (endpoint.failing_since !== null) return { tone: "danger", word: "failing" };
  return { tone: "ok", word: "enabled" };
}

export const statusClassTone: Record<Schemas["StatusClass"], Tone> = { success: "ok", refused: "warn", failed: "danger" };
export const keyTone: Record<Schemas["KeyStatus"], Tone> = { active: "ok", expired: "none", revoked: "none" };
export const healthTone: Record<Schemas["HealthState"], Tone> = { ok: "ok", warn: "warn", fail: "danger" };
