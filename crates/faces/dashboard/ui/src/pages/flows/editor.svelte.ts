// The draft of a flow while somebody edits it: its changes, undo, what is stored, and what is wrong with it.

import { api } from "../../lib/api";
import { toApiError } from "../../lib/errors";
import { Action } from "../../lib/query.svelte";
import { route } from "../../lib/route.svelte";
import type { Schemas } from "../../types/api";
import { difference, isEqual, isSame, type Difference } from "./canvas/graph";
import type { Graph, Issue } from "./canvas/kinds";

export type Flow = Schemas["Flow"];

const TOGETHER_MS = 1500;
const UNDO_LIMIT = 200;
const NOTHING: Graph = { nodes: [], edges: [], variables: [] };

export class Editor {
  readonly workspace = route.workspace;
  flow = $state.raw<Flow>() as Flow;
  graph = $state.raw<Graph>(NOTHING);
  /** The graph of the published version, if it is known. */
  published = $state.raw<Graph>();
  issues = $state.raw<Issue[]>([]);
  /** What somebody else has stored since this draft was read. */
  theirs = $state.raw<Flow>();
  action = new Action();
  #past = $state.raw<Graph[]>([]);
  #future = $state.raw<Graph[]>([]);
  #last = { tag: "", at: 0 };

  constructor(flow: Flow, readonly isReadOnly: boolean) {
    this.flow = flow;
    this.graph = flow.draft ?? NOTHING;
    void this.check();
  }

  get stored(): Graph {
    return this.flow.draft ?? NOTHING;
  }

  isSaved = $derived.by(() => isEqual(this.graph, this.stored));
  errors = $derived.by(() => this.issues.filter(({ severity }) => severity === "error").length);
  /** What the draft has that is not published. */
  unpublished = $derived.by<Difference | undefined>(() => (this.published ? difference(this.published, this.graph) : undefined));
  canUndo = $derived.by(() => this.#past.length > 0);
  canRedo = $derived.by(() => this.#future.length > 0);

  get isPublished(): boolean {
    return this.unpublished !== undefined && isSame(this.unpublished);
  }

  /** Changes the graph. Changes with the same tag that follow each other closely are undone together. */
  edit(graph: Graph, tag = ""): void {
    if (this.isReadOnly || graph === this.graph) return;
    const now = performance.now();
    const isTogether = tag !== "" && tag === this.#last.tag && now - this.#last.at < TOGETHER_MS;
    if (!isTogether) this.#past = [...this.#past, this.graph].slice(-UNDO_LIMIT);
    this.#last = { tag, at: now };
    this.#future = [];
    this.graph = graph;
  }

  undo(): void {
    const before = this.#past.at(-1);
    if (!before) return;
    this.#future = [...this.#future, this.graph];
    this.#past = this.#past.slice(0, -1);
    this.#last.tag = "";
    this.graph = before;
  }

  redo(): void {
    const after = this.#future.at(-1);
    if (!after) return;
    this.#past = [...this.#past, this.graph];
    this.#future = this.#future.slice(0, -1);
    this.#last.tag = "";
    this.graph = after;
  }

  /** Stores the draft if nobody has stored another one since, or if `over` is the version that it may replace. */
  async save(over = this.flow.version): Promise<boolean> {
    const path = { workspaceId: this.workspace, flowId: this.flow.id };
    const draft = this.graph;
    const saved = await this.action.run((idempotencyKey) =>
      api.patch("/workspaces/{workspaceId}/flows/{flowId}", { path, body: { draft }, ifMatch: over, idempotencyKey }),
    );
    if (saved) {
      this.take(saved.data, draft);
      await this.check();
      return true;
    }
    if (this.action.error?.status === 409) await this.readTheirs();
    return false;
  }

  /** Shows the flow as an answer has it. What was edited since the request was sent stays. */
  take(flow: Flow, sent?: Graph): void {
    const isUnchanged = sent === undefined ? this.isSaved : this.graph === sent;
    this.flow = { ...flow, draft: flow.draft ?? this.stored };
    if (isUnchanged) this.graph = this.stored;
    this.theirs = undefined;
    this.action.error = undefined;
  }

  /** Gives up the own changes for what somebody else has stored. They can be brought back by undo. */
  takeTheirs(): void {
    const theirs = this.theirs;
    if (!theirs) return;
    this.flow = theirs;
    this.edit(this.stored);
    this.theirs = undefined;
    this.action.error = undefined;
    void this.check();
  }

  /** Shows a draft that the service has put in the place of this one. Undo brings the other back. */
  restore(flow: Flow): void {
    this.flow = { ...flow, draft: flow.draft ?? this.stored };
    this.edit(this.stored);
    void this.check();
  }

  async readTheirs(): Promise<void> {
    try {
      const path = { workspaceId: this.workspace, flowId: this.flow.id };
      const { data } = await api.get("/workspaces/{workspaceId}/flows/{flowId}", { path });
      if (data.version !== this.flow.version) this.theirs = data;
    } catch (error) {
      this.action.error = toApiError(error);
    }
  }

  /** Asks the service what is wrong with the stored draft. */
  async check(): Promise<void> {
    const path = { workspaceId: this.workspace, flowId: this.flow.id };
    try {
      const { issues } = (await api.get("/workspaces/{workspaceId}/flows/{flowId}/validation", { path })).data;
      // To readers these would say that their own rights are missing, as if the flow were broken.
      this.issues = this.isReadOnly ? issues.filter(({ code }) => code !== "missing_scope") : issues;
    } catch (error) {
      this.action.error = toApiError(error);
    }
  }

  async readPublished(): Promise<void> {
    const version = this.flow.published_version;
    if (version === null) return void (this.published = undefined);
    const path = { workspaceId: this.workspace, flowId: this.flow.id, version };
    try {
      this.published = (await api.get("/workspaces/{workspaceId}/flows/{flowId}/versions/{version}", { path })).data.graph ?? NOTHING;
    } catch (error) {
      this.action.error = toApiError(error);
    }
  }
}
