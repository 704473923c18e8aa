// The list of conversations: pages as they are read, changed by events, in an order that does not move under the pointer.

import { SvelteMap } from "svelte/reactivity";
import { api } from "../../lib/api";
import { type ApiError, isAbort, toApiError } from "../../lib/errors";
import type { LiveEvent } from "../../lib/live.svelte";
import type { Conversation, People } from "./people.svelte";
import type { Schemas } from "../../types/api";

export interface View {
  status: Schemas["ConversationStatus"] | undefined;
  /** Whose conversations: those of the member who has signed in, or nobody's. */
  assignee: "me" | "none" | undefined;
  handler: Schemas["ConversationHandler"] | undefined;
  channel: number | undefined;
}

const LIMIT = 50;
/** Events come in bursts: the message, the contact and the handoff together. */
const GATHER_MS = 120;
/** With more changes than this, the first page is read again instead. */
const MOST_READ = 8;

export class Conversations {
  error = $state.raw<ApiError>();
  isLoading = $state(true);
  isLoadingMore = $state(false);
  next = $state.raw<string>();
  /** Whether the order stays as it is, because somebody points at the rows. */
  isHeld = $state(false);
  /** The open conversation stays in the list although it no longer belongs to the view. */
  open = $state.raw<number>();

  #known = new SvelteMap<number, Conversation>();
  #listed = $state.raw<ReadonlySet<number>>(new Set());
  #order = $state.raw<readonly { id: number; at: string }[]>();
  #view: View = { status: undefined, assignee: undefined, handler: undefined, channel: undefined };
  #people: People;
  #changed = new Set<number>();
  #changedContacts = new Set<number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #control = new AbortController();
  #readAt = 0;
  #isRead = $state(false);

  constructor(people: People) {
    this.#people = people;
    $effect(() => {
      if (!this.isHeld && this.#isRead) this.#order = this.#sorted.map(({ id, last_message_at: at }) => ({ id, at }));
    });
    $effect(() => {
      const seen = () => {
        // Closing, reopening and snoozing publish no event.
        if (!document.hidden && Date.now() - this.#readAt > 30_000) void this.reload();
      };
      document.addEventListener("visibilitychange", seen);
      return () => {
        document.removeEventListener("visibilitychange", seen);
        clearTimeout(this.#timer);
        this.#control.abort();
      };
    });
  }

  #sorted = $derived.by(() => {
    const rows = [...this.#listed].flatMap((id) => this.#known.get(id) ?? []);
    return rows
      .filter((row) => row.id === this.open || this.#matches(row))
      .sort((one, other) => (one.last_message_at < other.last_message_at ? 1 : one.last_message_at > other.last_message_at ? -1 : other.id - one.id));
  });

  get rows(): Conversation[] | undefined {
    return this.#order?.flatMap(({ id }) => this.#known.get(id) ?? []);
  }

  /** How many conversations would stand elsewhere in the newest order. */
  moved = $derived.by(() => {
    const order = this.#order ?? [];
    if (!this.isHeld || order.map(({ id }) => id).join() === this.#sorted.map(({ id }) => id).join()) return 0;
    const before = new Map(order.map(({ id, at }) => [id, at]));
    return this.#sorted.filter(({ id, last_message_at }) => before.get(id) !== last_message_at).length;
  });

  get(id: number): Conversation | undefined {
    return this.#known.get(id);
  }

  /** Puts the rows into the newest order. */
  settle(): void {
    this.#order = this.#sorted.map(({ id, last_message_at: at }) => ({ id, at }));
  }

  #matches(row: Conversation): boolean {
    const { status, assignee, handler, channel } = this.#view;
    const wanted = assignee === "me" ? this.#people.me : null;
    return (!status || row.status === status) && (!assignee || row.assignee === wanted) && (!handler || row.handler === handler) && (!channel || row.channel_id === channel);
  }

  async #page(after: string | undefined, signal: AbortSignal) {
    const { status, assignee, handler, channel } = this.#view;
    const whose = assignee === "me" ? String(await this.#people.own(signal)) : assignee;
    const query = { paginate: true, limit: LIMIT, ...(status && { status }), ...(whose && { assignee: whose }), ...(handler && { handler }), ...(channel && { channel_id: channel }), ...(after && { starting_after: after }) };
    const answer = await api.get("/conversations", { query, signal });
    await this.#people.read(answer.data.map(({ contact_id }) => contact_id), signal);
    return { rows: answer.data, next: (answer.has_more && answer.next_cursor) || undefined };
  }

  /** Shows another view, from its first page. */
  show(view: View): void {
    this.#view = view;
    this.#listed = new Set();
    this.#order = undefined;
    this.#isRead = false;
    this.next = undefined;
    this.error = undefined;
    void this.reload();
  }

  async reload(): Promise<void> {
    this.#control.abort();
    const control = (this.#control = new AbortController());
    this.isLoading = true;
    try {
      const { rows, next } = await this.#page(undefined, control.signal);
      // A page of a view may be empty although more follow.
      const oldest = rows.at(-1)?.last_message_at ?? "9";
      // What was read further down stays; what has left the first page is gone.
      const below = next === undefined ? [] : [...this.#listed].filter((id) => (this.#known.get(id)?.last_message_at ?? "") < oldest);
      for (const row of rows) this.#known.set(row.id, row);
      this.#listed = new Set([...rows.map(({ id }) => id), ...below]);
      if (below.length === 0 || !this.#isRead) this.next = next;
      this.error = undefined;
      this.#readAt = Date.now();
      this.#isRead = true;
      if (this.#order === undefined) this.settle();
    } catch (error) {
      if (control.signal.aborted || isAbort(error)) return;
      this.error = toApiError(error);
    }
    this.isLoading = false;
  }

  async more(): Promise<void> {
    const [next, control] = [this.next, this.#control];
    if (next === undefined || this.isLoadingMore) return;
    this.isLoadingMore = true;
    try {
      const page = await this.#page(next, control.signal);
      for (const row of page.rows) this.#known.set(row.id, row);
      this.#listed = new Set([...this.#listed, ...page.rows.map(({ id }) => id)]);
      this.next = page.next;
      this.settle();
    } catch (error) {
      if (!control.signal.aborted) this.error = toApiError(error);
    }
    this.isLoadingMore = false;
  }

  /** Reads one conversation again, with its contact. */
  async refresh(id: number, signal?: AbortSignal): Promise<Conversation> {
    const { data } = await api.get("/conversations/{conversationId}", { path: { conversationId: id }, ...(signal && { signal }) });
    await this.#people.read([data.contact_id], signal);
    this.#known.set(id, data);
    return data;
  }

  /** Notes what events have changed, and reads it soon. */
  take(events: readonly LiveEvent[]): void {
    for (const { data } of events) {
      const { conversation_id, contact_id } = data as { conversation_id?: unknown; contact_id?: unknown };
      if (typeof conversation_id === "number") this.#changed.add(conversation_id);
      else if (typeof contact_id === "number") this.#changedContacts.add(contact_id);
    }
    if (this.#changed.size + this.#changedContacts.size === 0) return;
    this.#timer ??= setTimeout(() => void this.#readChanged(), GATHER_MS);
  }

  async #readChanged(): Promise<void> {
    this.#timer = undefined;
    const [ids, contacts] = [[...this.#changed], [...this.#changedContacts]];
    this.#changed.clear();
    this.#changedContacts.clear();
    const known = [...this.#known.values()].filter(({ contact_id }) => contacts.includes(contact_id)).map(({ id }) => id);
    const all = [...new Set([...ids, ...known])];
    // Who answers a contact decides about the view; a conversation that was not read yet may belong to it now.
    const isMissing = (this.#view.assignee ?? this.#view.handler) !== undefined && contacts.length <= MOST_READ && contacts.some((id) => ![...this.#known.values()].some(({ contact_id }) => contact_id === id));
    try {
      if (all.length > MOST_READ || isMissing) await this.reload();
      const read = all.length > MOST_READ ? ids.filter((id) => id === this.open) : all;
      await Promise.all(read.map((id) => this.refresh(id)));
      if (all.length <= MOST_READ) this.#listed = new Set([...this.#listed, ...all]);
    } catch (error) {
      // The next event or the next look at the page reads it again.
      if (!isAbort(error)) console.warn("A changed conversation could not be read", error);
    }
  }
}
