// How the states of channels and templates are meant.

import type { Schemas } from "../../types/api";

type Tone = "ok" | "warn" | "danger" | "none";

export const qualityTone: Record<Schemas["ChannelQuality"], Tone> = { high: "ok", medium: "warn", low: "danger", unknown: "none" };
export const templateTone: Record<Schemas["MessageTemplateStatus"], Tone> = { pending: "none", approved: "ok", rejected: "danger", paused: "warn", disabled: "danger" };
