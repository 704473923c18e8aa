// The state of an inbound webhook and of what it received, in words and tones.

import { t } from "../../../text";
import type { Schemas } from "../../../types/api";

type Tone = "ok" | "warn" | "danger" | "none";

export const receivedTone: Record<Schemas["ReceivedRequestStatus"], Tone> = { accepted: "ok", processed: "ok", duplicate: "none", unmatched: "none", rejected: "danger", failed: "danger" };

export function stateOf(webhook: Schemas["InboundWebhook"]): { tone: Tone; text: string } {
  if (webhook.status === "disabled") return { tone: "none", text: t.inbound.statuses.disabled };
  if (webhook.verification_failures > 0) return { tone: "warn", text: t.inbound.rejecting(webhook.verification_failures) };
  return { tone: "ok", text: t.inbound.statuses.enabled };
}

/** Says why a request was rejected or failed. */
export function reason(error: Schemas["ReceivedRequestError"]): string {
  return error.param === "verification" ? (t.inbound.reasons[error.message] ?? error.message) : `${error.param}: ${error.message}`;
}
