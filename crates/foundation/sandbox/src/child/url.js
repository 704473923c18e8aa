// `URL` and `URLSearchParams`, compiled when a program first uses one of them.
(function (native) {
  "use strict";
  const text = (value) => String(value).toWellFormed();
  const unescaped = (part) => {
    const bytes = [];
    const given = native.encode(part.replaceAll("+", " "));
    for (let i = 0; i < given.length; i++) {
      const code = given[i] === 37 ? String.fromCharCode(given[i + 1], given[i + 2]) : "";
      if (/^[0-9a-fA-F]{2}$/.test(code)) {
        bytes.push(parseInt(code, 16));
        i += 2;
      } else bytes.push(given[i]);
    }
    return native.decode(Uint8Array.from(bytes), false);
  };
  const escaped = (part) =>
    encodeURIComponent(part)
      .replace(/[!'()~]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase())
      .replaceAll("%20", "+");

  class URLSearchParams {
    #pairs = [];
    #changed = () => {};
    constructor(given = "", changed = undefined) {
      if (typeof changed === "function") this.#changed = changed;
      if (typeof given === "object" && given !== null) {
        const entries = typeof given[Symbol.iterator] === "function" ? [...given] : Object.entries(given);
        this.#pairs = entries.map(([name, value]) => [text(name), text(value)]);
      } else {
        const query = text(given).replace(/^\?/, "");
        for (const part of query.split("&")) {
          if (part === "") continue;
          const cut = part.indexOf("=");
          const [name, value] = cut < 0 ? [part, ""] : [part.slice(0, cut), part.slice(cut + 1)];
          this.#pairs.push([unescaped(name), unescaped(value)]);
        }
      }
    }
    get size() { return this.#pairs.length; }
    append(name, value) { this.#pairs.push([text(name), text(value)]); this.#changed(); }
    delete(name) { this.#pairs = this.#pairs.filter(([one]) => one !== text(name)); this.#changed(); }
    get(name) { return this.#pairs.find(([one]) => one === text(name))?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([one]) => one === text(name)).map(([, value]) => value); }
    has(name) { return this.#pairs.some(([one]) => one === text(name)); }
    set(name, value) {
      const place = this.#pairs.findIndex(([one]) => one === text(name));
      if (place < 0) this.#pairs.push([text(name), text(value)]);
      else {
        this.#pairs[place] = [text(name), text(value)];
        this.#pairs = this.#pairs.filter(([one], at) => at <= place || one !== text(name));
      }
      this.#changed();
    }
    sort() { this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(); }
    forEach(each, self) { for (const [name, value] of this.#pairs) each.call(self, value, name, this); }
    keys() { return this.#pairs.map(([name]) => name).values(); }
    values() { return this.#pairs.map(([, value]) => value).values(); }
    entries() { return this.#pairs.map(([name, value]) => [name, value]).values(); }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#pairs.map(([name, value]) => `${escaped(name)}=${escaped(value)}`).join("&"); }
  }

  class URL {
    #parts;
    #query;
    constructor(address, base = undefined) {
      this.#parts = native.url(text(address), base === undefined ? undefined : text(base));
      if (this.#parts === null) throw new TypeError(`Invalid URL: ${text(address)}`);
    }
    static canParse(address, base = undefined) {
      return native.url(text(address), base === undefined ? undefined : text(base)) !== null;
    }
    static parse(address, base = undefined) { return URL.canParse(address, base) ? new URL(address, base) : null; }
    get href() { return this.#parts.href; }
    set href(value) {
      const parts = native.url(text(value), undefined);
      if (parts === null) throw new TypeError(`Invalid URL: ${text(value)}`);
      this.#parts = parts;
      this.#query = undefined;
    }
    get origin() { return this.#parts.origin; }
    get searchParams() {
      this.#query ??= new URLSearchParams(this.#parts.search, () => {
        this.#parts = native.setUrl(this.#parts.href, "search", this.#query.toString());
      });
      return this.#query;
    }
    toString() { return this.#parts.href; }
    toJSON() { return this.#parts.href; }
    static {
      for (const part of ["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"])
        Object.defineProperty(URL.prototype, part, {
          get() { return this.#parts[part]; },
          set(value) {
            this.#parts = native.setUrl(this.#parts.href, part, text(value));
            if (part === "search") this.#query = undefined;
          },
          enumerable: true,
          configurable: true,
        });
    }
  }
  return { URL, URLSearchParams };
})
