// Who is signed in, the tokens of the session, and what the member may do.

import { ApiError } from "./errors";
import { root, version } from "./root";

export type Role = "owner" | "admin" | "manager" | "agent" | "viewer";

export interface Place {
  id: number;
  name: string;
  role: Role;
}

interface Account {
  name: string;
  email: string;
  operator: boolean;
  workspaces: Place[];
}

/** In the test environment nothing reaches real people, and nothing costs Energy. */
export type Env = "live" | "test";

interface Token {
  token: string;
  /** When to get a new one, on the clock of `performance.now()`, which no change of the wall clock moves. */
  renewAt: number;
}

/** A token is replaced this long before it expires. */
const MARGIN_MS = 60_000;
const LIFETIME_MS = 300_000;
/** Rights are read again this often at most because of a refusal. */
const DOUBT_MS = 10_000;

/** The permissions with operations that change something in a blocked workspace too (docs/roles.txt). */
const OPEN_WHEN_BLOCKED = new Set(["account", "keys:manage", "business:manage", "workspace:manage", "installation:manage"]);

const channel = new BroadcastChannel("svc-session");

class Session {
  account = $state.raw<Account>();
  /** The scopes and permissions of the member in the workspace of this tab. */
  rights = $state.raw<ReadonlySet<string>>(new Set());
  /** Whether the workspace of this tab is blocked. */
  isBlocked = $state(false);
  /** What a person has to do in another window before the requests that wait are sent again. */
  needs = $state<"sign-in" | "proof">();
  /** Whether the service has another version of the dashboard. */
  isOutdated = $state(false);
  /** Goes up when the member may have other rights than this tab knows. */
  doubts = $state(0);

  #tokens = new Map<string, Promise<Token>>();
  #doubtedAt = -Infinity;
  #waiting: { go: () => void; stop: () => void }[] = [];

  constructor() {
    channel.addEventListener("message", ({ data }) => {
      if (data === "signed-in" && this.needs) void this.#check();
    });
    // The sign-in page may have been open in another window.
    addEventListener("focus", () => {
      if (this.needs === "sign-in") void this.#check();
    });
  }

  /** Returns the membership in a workspace. */
  place(id: number): Place | undefined {
    return this.account?.workspaces.find((place) => place.id === id);
  }

  /** Whether the member has a scope or a permission, and so sees what it opens. */
  sees(right: string | undefined): boolean {
    return right === undefined || this.rights.has(right);
  }

  /** Whether the member may use a scope or a permission now. In a blocked workspace everything can be read, but little changed. */
  can(right: string | undefined): boolean {
    return this.sees(right) && (!this.isBlocked || right === undefined || right.endsWith(":read") || OPEN_WHEN_BLOCKED.has(right));
  }

  /** Reads who is signed in. */
  async load(): Promise<Account> {
    const answer = await this.#fetch("/session", { headers: { accept: "application/json" } });
    const account = answer["data"] as Account;
    this.account = account;
    return account;
  }

  /** Returns a token for a workspace that is valid for at least a minute. Waits until somebody signs in if need be. */
  async token(workspace: number, env: Env = "live"): Promise<string> {
    const name = `${workspace}/${env}`;
    for (;;) {
      try {
        const found = await this.#tokens.get(name);
        if (found && performance.now() < found.renewAt) return found.token;
        const wanted = this.#exchange(workspace, env);
        this.#tokens.set(name, wanted);
        return (await wanted).token;
      } catch (error) {
        this.#tokens.delete(name);
        if (error instanceof ApiError && error.code === "not_a_member") void this.load().catch(() => undefined);
        if (!(error instanceof ApiError) || error.status !== 401) throw error;
        await this.#wait("sign-in", error);
      }
    }
  }

  /** Notes that a request was refused to which the member had the right: the role has changed, or the workspace is blocked. */
  doubt(): void {
    // A page that is refused again after its rights were read must not go round in circles.
    if (performance.now() - this.#doubtedAt < DOUBT_MS) return;
    this.#doubtedAt = performance.now();
    this.recheck();
  }

  /** Reads again what the member may do here, and the workspaces. */
  recheck(): void {
    this.doubts += 1;
    void this.load().catch(() => undefined);
  }

  /** Forgets the tokens of a workspace, which the service no longer takes. */
  forget(workspace: number): void {
    this.#tokens.delete(`${workspace}/live`);
    this.#tokens.delete(`${workspace}/test`);
  }

  /** Tells the other tabs that somebody has signed in. */
  announce(): void {
    channel.postMessage("signed-in");
  }

  /** Notes the version that an answer names. */
  note(headers: Headers): void {
    const served = headers.get("x-dashboard-version");
    if (version && served && served !== version) this.isOutdated = true;
  }

  async #exchange(workspace: number, env: Env): Promise<Token> {
    const asked = performance.now();
    const answer = await this.#fetch("/session/token", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ workspace, env }),
    });
    const { token } = answer["data"] as { token: string };
    return { token, renewAt: asked + LIFETIME_MS - MARGIN_MS };
  }

  async #fetch(path: string, init: RequestInit): Promise<Record<string, unknown>> {
    let response: Response;
    try {
      response = await fetch(root + path, { ...init, credentials: "same-origin", cache: "no-store", redirect: "error" });
    } catch {
      throw new ApiError(0, undefined);
    }
    this.note(response.headers);
    const body: unknown = await response.json().catch(() => undefined);
    if (!response.ok) throw new ApiError(response.status, body, response.headers);
    return body as Record<string, unknown>;
  }

  /** Opens the dialog, and waits until the session is there again. */
  async #wait(needs: "sign-in" | "proof", refused: unknown): Promise<void> {
    this.needs = needs;
    return new Promise((resolve, reject) => this.#waiting.push({ go: resolve, stop: () => reject(refused) }));
  }

  async #check(): Promise<void> {
    const before = this.account?.email;
    try {
      const account = await this.load();
      // Another person's page must not show what this one has left open.
      if (before !== undefined && account.email !== before) return location.assign(`${root}/app/`);
    } catch {
      return;
    }
    this.#end((one) => one.go());
  }

  /** Gives up: the requests that wait fail as they were refused. */
  cancel(): void {
    this.#end((one) => one.stop());
  }

  /** Waits until the member has given the password again. The tokens from before do not say so. */
  async prove(workspace: number, refused: unknown): Promise<void> {
    await this.#wait("proof", refused);
    this.forget(workspace);
  }

  #end(each: (one: { go: () => void; stop: () => void }) => void): void {
    this.needs = undefined;
    for (const one of this.#waiting.splice(0)) each(one);
  }
}

export const session = new Session();
