// How runs are shown.

import { t } from "../../../text";
import type { Schemas } from "../../../types/api";

type Tone = "ok" | "warn" | "danger" | "none";
type FlowRun = Schemas["FlowRun"];

export const flowRunTone: Record<Schemas["FlowRunStatus"], Tone> = {
  queued: "none", running: "none", waiting: "warn", paused: "warn", completed: "ok", failed: "danger", cancelled: "none", expired: "warn",
};
export const hasEnded = ({ status }: FlowRun) => status === "completed" || status === "failed" || status === "cancelled" || status === "expired";

/** A duration with its unit. */
export function milliseconds(ms: number): string {
  if (ms < 1000) return t.flowParts.ms(Math.round(ms));
  if (ms < 120_000) return t.flowParts.seconds((ms / 1000).toFixed(1));
  return ms < 7_200_000 ? t.flowParts.minutes(Math.round(ms / 60_000)) : t.flowParts.hours(Math.round(ms / 3_600_000));
}

export function duration(run: FlowRun): string {
  return run.started_at && run.ended_at ? milliseconds(Date.parse(run.ended_at) - Date.parse(run.started_at)) : t.none;
}
