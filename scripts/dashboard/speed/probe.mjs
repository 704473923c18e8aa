// What runs in the pages that are measured. These functions are sent to the browser, so each stands alone.

/**
 * Notes when the first data of a page can be seen, then presses a control and notes when its effect can be seen. `at.ready` and
 * `at.usable` are milliseconds since the navigation; `shift` is how far the layout moved. Without a control, nothing is pressed.
 */
export function firstView({ ready, control, effect }) {
  if (window !== window.top || location.protocol === "about:") return;
  const at = {};
  globalThis.speed = { at, shift: 0 };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) globalThis.speed.shift += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
  const seen = ({ css, text }) => [...document.querySelectorAll(css)].find((one) => one.checkVisibility() && !one.disabled && (!text || one.textContent.includes(text)));
  // A message that is sent in a frame arrives when the frame has been painted.
  const channel = new MessageChannel();
  let painted = [];
  channel.port1.onmessage = () => {
    for (const name of painted.splice(0)) at[name] = performance.now();
  };
  const note = (name) => {
    painted.push(name);
    channel.port2.postMessage(0);
  };
  let step = 0;
  const frame = () => {
    if (step === 0 && document.body && seen(ready)) {
      note("ready");
      step = 1;
    }
    if (step === 1) {
      if (!control) return;
      const found = seen(control);
      if (found) {
        found.click();
        step = 2;
      }
    } else if (step === 2 && seen(effect)) {
      note("usable");
      return;
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** Notes for each key how long it took from its press to the end of the frame that shows it. */
export function keyPresses() {
  const times = (globalThis.presses = []);
  const channel = new MessageChannel();
  const waiting = [];
  channel.port1.onmessage = () => times.push(...waiting.splice(0).map((pressed) => performance.now() - pressed));
  addEventListener("keydown", ({ timeStamp }) => requestAnimationFrame(() => (waiting.push(timeStamp), channel.port2.postMessage(0))), { capture: true });
}

/** Makes `shown(css, text)`, which returns when an element with this text was painted, in milliseconds of the wall clock. */
export function whenShown() {
  globalThis.shown = (css, pattern) =>
    new Promise((resolve) => {
      const wanted = new RegExp(pattern);
      const channel = new MessageChannel();
      let found;
      channel.port1.onmessage = () => resolve({ at: Date.now(), text: found });
      const look = () => {
        const one = [...document.querySelectorAll(css)].findLast((element) => wanted.test(element.textContent));
        if (!one) return requestAnimationFrame(look);
        found = one.textContent;
        return channel.port2.postMessage(0);
      };
      requestAnimationFrame(look);
    });
}

/**
 * Watches the observer of the whole document, which `src/lib/marks.ts` has: `marks.spent` is its time in milliseconds since the last
 * frame, `marks.frames` that of all frames. If it is off, it observes nothing.
 */
export function marksCost({ isOff }) {
  const marks = (globalThis.marks = { spent: 0, frames: [], calls: 0, records: 0 });
  const Native = MutationObserver;
  globalThis.MutationObserver = class extends Native {
    #isWhole = false;
    constructor(take) {
      super((changes, observer) => {
        const began = performance.now();
        take(changes, observer);
        if (this.#isWhole) {
          marks.spent += performance.now() - began;
          marks.calls += 1;
          marks.records += changes.length;
        }
      });
    }
    observe(node, options) {
      this.#isWhole = node === document.body;
      if (!this.#isWhole || !isOff) super.observe(node, options);
    }
  };
  const frame = () => {
    marks.frames.push(marks.spent);
    marks.spent = 0;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
