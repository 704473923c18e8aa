// What a person has chosen for this browser. Nothing of a workspace, and no secret.

export type Theme = "auto" | "light" | "dark";

const KEY = "svc-settings";

class Settings {
  theme = $state<Theme>("auto");
  /** Whether single keys do something (WCAG 2.1.4). */
  hasKeys = $state(true);

  constructor() {
    try {
      const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<{ theme: Theme; keys: boolean }>;
      if (stored.theme === "light" || stored.theme === "dark") this.theme = stored.theme;
      this.hasKeys = stored.keys !== false;
    } catch {
      // A browser without storage has the defaults.
    }
  }

  set(changes: Partial<{ theme: Theme; hasKeys: boolean }>): void {
    Object.assign(this, changes);
    this.apply();
    try {
      localStorage.setItem(KEY, JSON.stringify({ theme: this.theme, keys: this.hasKeys }));
    } catch {
      // It holds until the page is closed.
    }
  }

  apply(): void {
    document.documentElement.dataset["theme"] = this.theme;
  }
}

export const settings = new Settings();
