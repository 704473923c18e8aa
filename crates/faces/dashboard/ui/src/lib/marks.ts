// Marks that nobody sees: those that turn the direction of text, and those without width. They are shown wherever a text stands, so that
// nothing hides behind them and no text turns its neighbours around.

// Joiners belong to the letters of some scripts and to emoji; next to Latin letters, or alone, they only hide something.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]|(?<![^\u0000-\u02ff])[\u200c\u200d]|[\u200c\u200d](?![^\u0000-\u02ff])/g;

/** Writes marks that nobody sees as their numbers. */
export function marked(text: string): string {
  return text.replace(HIDDEN, (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

function mark(text: Text) {
  const shown = marked(text.data);
  if (shown !== text.data) text.data = shown;
}

/** Shows the marks in all texts below a node, now and later. What is typed into a field stays as it is. */
export function showMarks(root: Node) {
  const below = (node: Node) => {
    const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    if (node instanceof Text) mark(node);
    while (texts.nextNode()) mark(texts.currentNode as Text);
  };
  // Before anything is painted. Svelte compares new texts with those that it wrote, so that it does not see the change.
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      if (target instanceof Text) mark(target);
      for (const node of addedNodes) below(node);
    }
  }).observe(root, { subtree: true, childList: true, characterData: true });
  below(root);
}
