// How the state of an import is meant.

import type { Schemas } from "../../../types/api";

export const importTone: Record<Schemas["ImportStatus"], "ok" | "warn" | "danger" | "none"> = {
  queued: "none", validating: "none", running: "none", completed: "ok", completed_with_errors: "warn", failed: "danger", cancelled: "none",
};
