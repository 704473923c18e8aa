// Dialogs over the page.

/** Opens a dialog over the page. Returns what closes it, and gives the focus back to what had it before. */
export function modal(dialog: HTMLDialogElement): () => void {
  const before = document.activeElement;
  dialog.showModal();
  return () => {
    dialog.close();
    // Browsers do that themselves unless the dialog has left the page already.
    if (before instanceof HTMLElement && before.isConnected && document.activeElement === document.body) before.focus({ preventScroll: true });
  };
}
