// Files that were chosen for a conversation and not sent yet. They belong to the conversation while the page is open: no browser
// gives a file back after a reload, so the page asks before it is left.

import { SvelteMap } from "svelte/reactivity";
import { api, newKey } from "../../../lib/api";
import { type ApiError, toApiError } from "../../../lib/errors";
import { bytes } from "../../../lib/format";
import { upload, type Stored } from "../../../lib/upload";
import { t } from "../../../text";
import type { Schemas } from "../../../types/api";
import type { Channel } from "../people.svelte";

export type Kind = Exclude<Schemas["ChannelMediaKind"], "sticker">;

/** The largest file that one request stores. */
const LARGEST = 104_857_600;
/** The longest text below a file. */
const LONGEST_CAPTION = 1024;
/** The most files of one message: each reaches the contact as a message of its own. */
export const MOST_FILES = 10;

/** Returns what a file is sent as. The network shows only these types of pictures and videos in the conversation. */
export function kindOf(type: string): Kind {
  if (type === "image/jpeg" || type === "image/png") return "image";
  if (type.startsWith("audio/")) return "audio";
  return type === "video/mp4" || type === "video/3gpp" ? "video" : "document";
}

/** Returns as what the network measures a file, however it is sent: a large picture does not pass as a document. */
function familyOf(type: string): Kind {
  const [family = ""] = type.split("/");
  return family === "image" || family === "audio" || family === "video" ? family : "document";
}

function largest(family: Kind, channel: Channel | undefined): number {
  if (!channel) return LARGEST;
  const { max_image_bytes: image, max_audio_video_bytes: sound, max_document_bytes: document } = channel.capabilities;
  return Math.min(LARGEST, { image, audio: sound, video: sound, document }[family]);
}

export class Chosen {
  readonly id = newKey();
  readonly preview: string | undefined;
  isBusy = $state(false);
  /** The share that is uploaded, while it is on its way. */
  progress = $state<number>();
  error = $state.raw<ApiError>();
  #stored = $state.raw<Stored>();
  #keys = { upload: newKey(), send: newKey() };

  constructor(readonly file: File) {
    if (file.type.startsWith("image/")) this.preview = URL.createObjectURL(file);
  }

  get #type(): string {
    return this.#stored?.mime_type ?? this.file.type;
  }

  get kind(): Kind {
    return kindOf(this.#type);
  }

  /** Returns why it cannot be sent over a channel. */
  mistake(channel: Channel | undefined): string | undefined {
    if (this.file.size === 0) return t.inboxFiles.empty;
    const family = familyOf(this.#type);
    const most = largest(family, channel);
    return this.file.size > most ? t.inboxFiles.tooLarge[family](bytes(most)) : undefined;
  }

  takes(caption: string): boolean {
    return this.kind !== "audio" && [...caption].length <= LONGEST_CAPTION;
  }

  /** Uploads the file, unless it is stored. Returns whether it is. */
  async store(): Promise<boolean> {
    return this.#try(async () => {
      this.#stored ??= await upload(this.file, { idempotencyKey: this.#keys.upload, progress: (share) => (this.progress = share) });
    });
  }

  /** Sends the stored file to a contact. Returns whether it was. */
  async send(contactId: number, message: Pick<Schemas["OperatorMessage"], "channel_id" | "reply_to">, caption: string | undefined): Promise<boolean> {
    return this.#try(async () => {
      if (!this.#stored) throw new Error("the file is not stored");
      const attachment = { file_id: this.#stored.id, type: this.kind, ...(caption && { caption }) };
      const body = { ...message, attachment };
      await api.post("/contacts/{contactId}/operator-messages", { path: { contactId: String(contactId) }, body, idempotencyKey: this.#keys.send });
    });
  }

  async #try(step: () => Promise<void>): Promise<boolean> {
    this.isBusy = true;
    this.error = undefined;
    try {
      await step();
      return true;
    } catch (error) {
      this.error = toApiError(error);
      // The same attempt repeated has no second effect; another attempt is another request.
      if (!this.error.isTransient) this.#keys = { upload: newKey(), send: newKey() };
      return false;
    } finally {
      this.isBusy = false;
      this.progress = undefined;
    }
  }

  forget(): void {
    if (this.preview) URL.revokeObjectURL(this.preview);
  }
}

const none: readonly Chosen[] = [];

class Files {
  #all = new SvelteMap<string, readonly Chosen[]>();

  constructor() {
    addEventListener("beforeunload", (event) => this.#all.size > 0 && event.preventDefault());
  }

  of(workspace: number, conversation: number): readonly Chosen[] {
    return this.#all.get(`${workspace}/${conversation}`) ?? none;
  }

  /** Adds files, as many as one message takes. Returns whether all were taken. */
  add(workspace: number, conversation: number, files: readonly File[]): boolean {
    const before = this.of(workspace, conversation);
    const taken = files.slice(0, Math.max(0, MOST_FILES - before.length));
    if (taken.length) this.#all.set(`${workspace}/${conversation}`, [...before, ...taken.map((file) => new Chosen(file))]);
    return taken.length === files.length;
  }

  remove(workspace: number, conversation: number, one: Chosen): void {
    one.forget();
    const rest = this.of(workspace, conversation).filter((other) => other !== one);
    if (rest.length) this.#all.set(`${workspace}/${conversation}`, rest);
    else this.#all.delete(`${workspace}/${conversation}`);
  }
}

export const files = new Files();
