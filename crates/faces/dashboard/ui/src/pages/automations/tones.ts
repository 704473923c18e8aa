// How the states of automations and firings are meant.

import type { Schemas } from "../../types/api";

type Tone = "ok" | "warn" | "danger" | "none";
export const automationTone: Record<Schemas["AutomationStatus"], Tone> = { on: "ok", off: "none", suspended: "danger" };
export const firingTone: Record<Schemas["FiringStatus"], Tone> = { pending: "none", dispatched: "ok", skipped: "warn", held: "warn", discarded: "none", failed: "danger" };
