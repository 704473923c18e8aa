// How the states of agents and steps are meant.

import type { Schemas } from "../../types/api";

type Tone = "ok" | "warn" | "danger" | "none";

export const agentTone: Record<Schemas["AgentStatus"], Tone> = { draft: "none", active: "ok", inactive: "warn", archived: "none" };

const steps: Record<string, Tone> = { completed: "ok", failed: "danger", unknown: "warn", requires_action: "warn", refused: "danger" };
export const stepTone = (status: string): Tone => steps[status] ?? "none";
