// Who did something, in words.

import { t } from "../../../text";
import type { Schemas } from "../../../types/api";
import type { ContactData } from "../data.svelte";

export function actorName(actor: Schemas["Actor"], data: ContactData): string {
  if (actor.type === "user" && /^\d+$/.test(actor.id)) return data.member(Number(actor.id));
  return t.events.actors[actor.type];
}
