// The conversation of the playground: its turns, each with a run that is streamed.

import { api, newKey, open, type Row } from "../../../lib/api";
import { ApiError, isAbort, toApiError } from "../../../lib/errors";
import type { Env } from "../../../lib/session.svelte";
import type { Schemas } from "../../../types/api";
import { followRun, isOpen, readRun, type Run, type Step } from "../runs/runs";
import { events } from "./stream";

/** What is sent besides the message. */
export interface Settings {
  env: Env;
  agentId: number;
  version: number | "draft" | undefined;
  maxSteps: number | undefined;
  timeout: number | undefined;
  onBusy: Schemas["OnBusy"];
}

/** A message and the run that answers it. */
export class Turn {
  readonly input: string;
  run = $state.raw<Run>();
  steps = $state.raw<Step[]>([]);
  /** The texts of model steps as they arrive, by step. */
  texts = $state<Record<string, string>>({});
  error = $state.raw<ApiError>();
  isStreaming = $state(false);
  /** Whether the steps were read. Those of runs that others started are read when somebody looks at them. */
  hasSteps = $state(false);

  constructor(input: string, run?: Run) {
    this.input = input;
    this.run = run;
  }

  get isBusy(): boolean {
    return this.isStreaming || (this.run !== undefined && isOpen(this.run));
  }

  /** The answer so far. */
  get text(): string {
    if (this.run?.output) return this.run.output;
    const last = this.steps.findLast((step) => step.type === "model");
    return last ? (this.texts[last.id] ?? "") : "";
  }

  /** Takes a run that was read. */
  take(run: Run): void {
    this.run = run;
    if (run.steps) {
      this.steps = run.steps;
      this.hasSteps = true;
    }
    if (run.error) this.error = new ApiError(0, { error: run.error });
  }

  /** Takes an event of the stream. */
  note(event: string, data: Record<string, unknown>): void {
    if (event === "output.delta") {
      const { step_id: id, offset, delta } = data as { step_id: string; offset: number; delta: string };
      // An offset of 0 begins the text again: another attempt answers.
      this.texts[id] = offset === 0 ? delta : (this.texts[id] ?? "") + delta;
    } else if (event === "step.started") {
      const { step_id: id, position, type, name } = data as { step_id: string; position: number; type: string; name: string };
      this.#put({ id, object: "run_step", position, type, name, status: "running", tier: null, effect_key: null, input: null, output: null, input_tokens: 0, output_tokens: 0, energy: 0, started_at: new Date().toISOString(), completed_at: null });
    } else if (event === "step.completed") {
      this.#put(data["step"] as Step);
    } else if (event === "error" || data["success"] === false) {
      this.error = new ApiError(0, data);
    } else if (event.startsWith("run.")) {
      this.run = data["data"] as Run;
      this.hasSteps = true;
    }
  }

  #put(step: Step): void {
    this.steps = [...this.steps.filter(({ id }) => id !== step.id), step].sort((one, other) => one.position - other.position);
  }
}

/** The most turns that are read of a conversation. */
export const MOST_TURNS = 50;

export class Conversation {
  turns = $state<Turn[]>([]);
  id: string | undefined;
  error = $state.raw<ApiError>();
  isLoading = $state(false);
  isCut = $state(false);
  #control = new AbortController();

  get busy(): Turn | undefined {
    return this.turns.findLast((turn) => turn.isBusy);
  }

  /** Stops reading. Runs go on. */
  close(): void {
    this.#control.abort();
  }

  /** Reads the runs of a conversation. */
  async load(id: string): Promise<void> {
    this.id = id;
    this.isLoading = true;
    const { signal } = this.#control;
    try {
      const answer = await api.get("/runs", { query: { conversation_id: id, limit: MOST_TURNS }, signal });
      this.turns = (answer.data as Row<"/runs">[]).toReversed().map((run) => new Turn(run.input ?? "", run));
      this.isCut = answer.has_more;
      for (const turn of this.turns) if (turn.isBusy) void this.#follow(turn);
    } catch (error) {
      if (!isAbort(error)) this.error = toApiError(error);
    }
    this.isLoading = false;
  }

  /** Reads the steps of a turn if they are not there. */
  async look(turn: Turn): Promise<void> {
    if (turn.hasSteps || !turn.run) return;
    try {
      turn.take(await readRun(turn.run.id, this.#control.signal));
    } catch (error) {
      if (!isAbort(error)) turn.error = toApiError(error);
    }
  }

  /** Sends a message, and follows the run to its end. `started` is called when the conversation has an id. */
  async send(input: string, settings: Settings, started: () => void): Promise<void> {
    this.turns.push(new Turn(input));
    const turn = this.turns.at(-1) as Turn;
    turn.isStreaming = true;
    const { env, agentId, version, maxSteps, timeout, onBusy } = settings;
    const body: Schemas["NewRun"] = { input, agent_id: agentId, stream: true, on_busy: onBusy, ...(this.id && { conversation_id: this.id }), ...(version && { agent_version: version }), ...(maxSteps && { max_steps: maxSteps }), ...(timeout && { timeout_seconds: timeout }) };
    const { signal } = this.#control;
    try {
      const response = await open("post", "/runs", "text/event-stream", { body, env, signal, idempotencyKey: newKey() });
      for await (const { event, data } of events(response)) {
        turn.note(event, data as Record<string, unknown>);
        if (event === "run.created" && turn.run && this.id === undefined) {
          this.id = turn.run.conversation_id;
          started();
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      // A stream that breaks does not end the run.
      if (!turn.run) turn.error = toApiError(error);
    }
    turn.isStreaming = false;
    if (turn.run) await this.#follow(turn);
  }

  async #follow(turn: Turn): Promise<void> {
    const id = turn.run?.id;
    if (!id) return;
    try {
      await followRun(id, (run) => turn.take(run), this.#control.signal);
    } catch (error) {
      if (!isAbort(error) && !this.#control.signal.aborted) turn.error = toApiError(error);
    }
  }
}
