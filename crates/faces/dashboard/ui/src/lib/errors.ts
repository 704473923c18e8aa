// Errors as the API answers them, and those of the connection.

/** One mistake of a request. */
export interface Mistake {
  param: string;
  message: string;
}

/** An error of a request. `code` is of the closed set of docs/errors.md, or `connection` if there was no answer. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly param: string | undefined;
  readonly errors: readonly Mistake[];
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly rechargeUrl: string | undefined;

  constructor(status: number, body: unknown, headers?: Headers) {
    const { error = {}, request_id } = (body ?? {}) as { error?: Record<string, unknown>; request_id?: string };
    super(typeof error["message"] === "string" ? error["message"] : "");
    this.status = status;
    this.code = typeof error["code"] === "string" ? error["code"] : status === 0 ? "connection" : "unknown";
    this.param = typeof error["param"] === "string" ? error["param"] : undefined;
    this.errors = Array.isArray(error["errors"]) ? (error["errors"] as Mistake[]) : [];
    this.requestId = request_id ?? headers?.get("x-request-id") ?? undefined;
    const seconds = Number(headers?.get("retry-after") ?? "");
    this.retryAfter = seconds > 0 ? seconds : undefined;
    this.rechargeUrl = typeof error["recharge_url"] === "string" ? error["recharge_url"] : undefined;
  }

  /** Whether the same request may succeed later, so that its idempotency key is kept. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** Whether the caller may not do this. */
  get isForbidden(): boolean {
    return this.status === 403;
  }

  /** What is wrong with one field of the request. */
  of(param: string): string | undefined {
    const found = this.errors.find((mistake) => mistake.param === param || mistake.param.startsWith(`${param}[`));
    return found?.message ?? (this.param === param ? this.message : undefined);
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Turns whatever was thrown into an error that a page can show. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  console.error(error);
  return new ApiError(0, { error: { code: "program", message: error instanceof Error ? error.message : "" } });
}
