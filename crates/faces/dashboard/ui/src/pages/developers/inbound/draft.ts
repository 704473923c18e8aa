// The form of an inbound webhook: what is typed, and the body that it makes.

import type { Schemas } from "../../../types/api";

type Verification = Schemas["NewInboundVerification"];
type Kind = Schemas["InboundVerificationType"];

export interface VerificationDraft {
  type: Kind;
  secret: string;
  header: string;
  username: string;
  publicKey: string;
  algorithm: Schemas["InboundHmacAlgorithm"];
  encoding: Schemas["InboundSignatureEncoding"];
  prefix: string;
  signed: string;
  timestampHeader: string;
  tolerance: string;
  verifyToken: string;
}

export interface Draft {
  name: string;
  description: string;
  verification: VerificationDraft;
  dedupe: { by: Schemas["InboundDedupeBy"] | ""; from: string };
  response: { type: Schemas["InboundResponseType"]; status: string; body: string; contentType: string; flowId: string; timeout: string };
  allowed: string;
  perMinute: number | null;
  capture: boolean;
}

/** Which fields a way of verification has. All others are presets that need a secret only. */
export const fieldsOf = (type: Kind) => ({
  secret: !["none", "ed25519", "discord"].includes(type),
  header: ["header_secret", "hmac", "ed25519"].includes(type),
  username: type === "basic",
  publicKey: type === "ed25519" || type === "discord",
  algorithm: type === "hmac",
  encoding: type === "hmac" || type === "ed25519",
  prefix: type === "hmac",
  signed: type === "hmac" || type === "ed25519",
  verifyToken: type === "meta",
});

export function draftOf(webhook: Schemas["InboundWebhook"] | undefined): Draft {
  const verification = webhook?.verification;
  const response = webhook?.response;
  return {
    name: webhook?.name ?? "",
    description: webhook?.description ?? "",
    verification: {
      type: verification?.type ?? "hmac",
      secret: "",
      header: verification?.header ?? (webhook ? "" : "X-Signature"),
      username: verification?.username ?? "",
      publicKey: verification?.public_key ?? "",
      algorithm: verification?.algorithm ?? "sha256",
      encoding: verification?.encoding ?? "hex",
      prefix: verification?.prefix ?? "",
      signed: verification?.signed ?? "{body}",
      timestampHeader: verification?.timestamp_header ?? "",
      tolerance: String(verification?.tolerance_seconds ?? ""),
      verifyToken: "",
    },
    dedupe: { by: webhook?.dedupe.by ?? "", from: webhook?.dedupe.header ?? webhook?.dedupe.path ?? "" },
    response: {
      type: response?.type ?? "ack",
      status: String(response?.status ?? 200),
      body: response?.body ?? "",
      contentType: response?.content_type ?? "",
      flowId: String(response?.flow_id ?? ""),
      timeout: String(response?.timeout_seconds ?? ""),
    },
    allowed: webhook?.allowed_ips.join("\n") ?? "",
    perMinute: webhook?.rate_limit.per_minute ?? null,
    capture: webhook?.capture ?? false,
  };
}

function verificationOf(draft: VerificationDraft): Verification {
  const has = fieldsOf(draft.type);
  return {
    type: draft.type,
    ...(has.secret && draft.secret && { secrets: draft.secret.split("\n").map((line) => line.trim()).filter(Boolean) }),
    ...(has.header && { header: draft.header.trim() }),
    ...(has.username && { username: draft.username }),
    ...(has.publicKey && { public_key: draft.publicKey.trim() }),
    ...(has.algorithm && { algorithm: draft.algorithm }),
    ...(has.encoding && { encoding: draft.encoding }),
    ...(has.prefix && draft.prefix && { prefix: draft.prefix }),
    ...(has.signed && { signed: draft.signed || "{body}" }),
    ...(has.signed && draft.timestampHeader && { timestamp_header: draft.timestampHeader.trim() }),
    ...(has.signed && draft.timestampHeader && draft.tolerance && { tolerance_seconds: Number(draft.tolerance) }),
    ...(has.verifyToken && draft.verifyToken && { verify_token: draft.verifyToken }),
  };
}

function responseOf(draft: Draft["response"]): Schemas["InboundResponse"] {
  if (draft.type === "static") return { type: "static", status: Number(draft.status) || 200, body: draft.body, ...(draft.contentType && { content_type: draft.contentType }) };
  if (draft.type === "flow") return { type: "flow", flow_id: Number(draft.flowId) || null, ...(draft.timeout && { timeout_seconds: Number(draft.timeout) }) };
  return { type: "ack" };
}

/** Returns the body of the request that creates or changes a webhook. What a change does not touch is not sent. */
export function bodyOf(draft: Draft, before: Schemas["InboundWebhook"] | undefined): Schemas["NewInboundWebhook"] {
  const old = draftOf(before);
  // A changed verification needs a recent sign-in, so an unchanged one is left out.
  const isSame = (one: unknown, other: unknown) => before !== undefined && JSON.stringify(one) === JSON.stringify(other);
  const { by, from } = draft.dedupe;
  const perMinute = draft.perMinute;
  return {
    name: draft.name,
    description: draft.description.trim() || null,
    ...(!isSame(draft.verification, old.verification) && { verification: verificationOf(draft.verification) }),
    ...(by !== "" && !isSame(draft.dedupe, old.dedupe) && { dedupe: { by, ...(by === "header" && { header: from.trim() }), ...(by === "json_path" && { path: from.trim() }) } }),
    ...(!isSame(draft.response, old.response) && { response: responseOf(draft.response) }),
    ...(!isSame(draft.allowed, old.allowed) && { allowed_ips: draft.allowed.split(/[\s,]+/).filter(Boolean) }),
    ...(perMinute && !isSame(perMinute, old.perMinute) && { rate_limit: { per_minute: perMinute } }),
    ...(!isSame(draft.capture, old.capture) && { capture: draft.capture }),
  };
}
