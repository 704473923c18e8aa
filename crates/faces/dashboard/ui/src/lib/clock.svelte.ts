// The time, for relative times: one timer for all of them.

class Clock {
  now = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = Date.now();
    }, 15_000);
    document.addEventListener("visibilitychange", () => (this.now = Date.now()));
  }
}

export const clock = new Clock();
