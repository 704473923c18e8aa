// The drafts that are open in this tab, so that going to another page and back loses nothing.

import type { Editor } from "./editor.svelte";

const editors = new Map<string, Editor>();

export const kept = {
  get: (workspace: number, flow: number): Editor | undefined => editors.get(`${workspace}/${flow}`),
  set: (workspace: number, flow: number, editor: Editor): void => void editors.set(`${workspace}/${flow}`, editor),
  drop: (workspace: number, flow: number): void => void editors.delete(`${workspace}/${flow}`),
};
