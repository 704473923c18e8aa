// Evaluated before the program: makes the globals, and returns a function that calls the program's function with `ctx`.
(function (native, given, now) {
  "use strict";
  const global = globalThis;
  const define = (name, value) =>
    Object.defineProperty(global, name, { value, writable: true, enumerable: false, configurable: true });
  const lazily = (name, part) =>
    Object.defineProperty(global, name, {
      get() {
        const made = native.load(part)(native, utf8, base64url);
        for (const [name, value] of Object.entries(made)) define(name, value);
        return made[name];
      },
      set(value) {
        define(name, value);
      },
      enumerable: false,
      configurable: true,
    });
  const text = (value) => String(value).toWellFormed();
  const utf8 = (value) => native.encode(text(value));
  const base64url = (bytes) => native.toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  // No code from text.
  const refuse = function Function() {
    throw new EvalError("code cannot be made from text here");
  };
  const prototypes = [function () {}, async function () {}, function* () {}, async function* () {}].map(Object.getPrototypeOf);
  for (const prototype of prototypes)
    Object.defineProperty(prototype, "constructor", { value: refuse, writable: false, configurable: false });
  Object.defineProperty(refuse, "prototype", { value: prototypes[0], writable: false });
  define("Function", refuse);
  delete global.eval;

  Math.random = () => native.random();
  if (now !== undefined && now !== null) {
    const time = Number(now);
    const Real = Date;
    const Fixed = function Date(...values) {
      if (new.target === undefined) return new Real(time).toString();
      return Reflect.construct(Real, values.length === 0 ? [time] : values, new.target);
    };
    Fixed.prototype = Real.prototype;
    Fixed.now = () => time;
    Fixed.parse = Real.parse;
    Fixed.UTC = Real.UTC;
    Object.defineProperty(Real.prototype, "constructor", { value: Fixed, writable: true, configurable: true });
    define("Date", Fixed);
  }

  // Bytes and texts.
  const bytes = (value) => {
    if (typeof value === "string") return utf8(value);
    if (value instanceof Uint8Array) return value;
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    throw new TypeError("a string, an ArrayBuffer or a view of one is expected");
  };
  define("TextEncoder", class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(value = "") { return utf8(value); }
  });
  define("TextDecoder", class TextDecoder {
    #fatal;
    #keepMark;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      if (!["utf-8", "utf8", "unicode-1-1-utf-8"].includes(String(label).trim().toLowerCase()))
        throw new RangeError("the only encoding is utf-8");
      this.#fatal = Boolean(fatal);
      this.#keepMark = Boolean(ignoreBOM);
    }
    get encoding() { return "utf-8"; }
    get fatal() { return this.#fatal; }
    decode(value = new Uint8Array(0)) {
      const decoded = native.decode(bytes(value), this.#fatal);
      return !this.#keepMark && decoded.startsWith("\ufeff") ? decoded.slice(1) : decoded;
    }
  });
  define("btoa", (value) => {
    const points = Array.from(String(value), (c) => c.codePointAt(0));
    if (points.some((point) => point > 255)) throw new RangeError("btoa takes characters up to U+00FF only");
    return native.toBase64(Uint8Array.from(points));
  });
  define("atob", (value) => Array.from(native.fromBase64(text(value)), (byte) => String.fromCharCode(byte)).join(""));

  const written = (result, encoding) => {
    switch (encoding) {
      case "hex": return Array.from(result, (byte) => byte.toString(16).padStart(2, "0")).join("");
      case "base64": return native.toBase64(result);
      case "base64url": return base64url(result);
      case "bytes": return result;
      default: throw new TypeError("the encoding is hex, base64, base64url or bytes");
    }
  };
  const algorithm = (value) => {
    const name = String(typeof value === "object" && value !== null ? value.name : value).toUpperCase();
    return name.replace(/^SHA-?(\d+)$/, "SHA-$1");
  };
  define("crypto", {
    randomUUID() {
      const id = native.randomBytes(16);
      id[6] = (id[6] & 0x0f) | 0x40;
      id[8] = (id[8] & 0x3f) | 0x80;
      return written(id, "hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    },
    getRandomValues(array) {
      const view = bytes(array);
      if (view.length > 65536) throw new RangeError("at most 65536 bytes at a time");
      view.set(native.randomBytes(view.length));
      return array;
    },
    digest: (name, data, encoding = "hex") => written(native.hash(algorithm(name), bytes(data)), encoding),
    hmac: (name, key, data, encoding = "hex") =>
      written(native.hmac(algorithm(name), bytes(key), bytes(data)), encoding),
    subtle: { digest: async (name, data) => native.hash(algorithm(name), bytes(data)).buffer },
  });
  lazily("URL", "url");
  lazily("URLSearchParams", "url");
  lazily("structuredClone", "clone");

  // The log.
  const shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (typeof value === "object" && value !== null) {
      try {
        return JSON.stringify(value) ?? String(value);
      } catch {
        return "[object that cannot be shown]";
      }
    }
    return String(value);
  };
  const log = (level) => (...values) => native.log(level, text(values.map(shown).join(" ")));
  define("console", { debug: log(0), log: log(1), info: log(1), warn: log(2), error: log(3) });

  define("RetryableError", class RetryableError extends Error {
    constructor(milliseconds, message = "try again later") {
      super(message);
      this.name = "RetryableError";
      this.retryAfter = Number(milliseconds);
    }
  });

  // The outside.
  const ask = async (call, body) => {
    let answer;
    try {
      answer = await native.host(text(JSON.stringify(call)), body);
    } catch (refusal) {
      const error = new Error(refusal.message);
      error.name = refusal.name;
      if (typeof refusal.code === "string") error.code = refusal.code;
      throw error;
    }
    return answer;
  };
  const plain = async (call) => (await ask(call)).value;

  class Headers {
    #pairs;
    constructor(pairs) { this.#pairs = pairs; }
    get(name) {
      const wanted = String(name).toLowerCase();
      const found = this.#pairs.filter(([name]) => name === wanted).map(([, value]) => value);
      return found.length === 0 ? null : found.join(", ");
    }
    has(name) { return this.get(name) !== null; }
    entries() { return this.#pairs.values(); }
    [Symbol.iterator]() { return this.entries(); }
  }
  class Response {
    #body;
    constructor(head, body) {
      this.status = head.status;
      this.ok = head.status >= 200 && head.status < 300;
      this.url = head.url;
      this.headers = new Headers(head.headers);
      this.#body = new Uint8Array(body);
    }
    async bytes() { return this.#body; }
    async arrayBuffer() { return this.#body.buffer; }
    async text() { return new TextDecoder().decode(this.#body); }
    async json() { return JSON.parse(await this.text()); }
  }
  const pairs = (headers) => {
    if (headers === undefined || headers === null) return [];
    const given = typeof headers[Symbol.iterator] === "function" ? [...headers] : Object.entries(headers);
    return given.map(([name, value]) => [text(name).toLowerCase(), text(value)]);
  };
  const fetch = async (resource, init = {}) => {
    const headers = pairs(init.headers);
    let body = init.body;
    if (body === undefined || body === null) body = undefined;
    else if (typeof body === "object" && !(body instanceof ArrayBuffer) && !ArrayBuffer.isView(body)) {
      // `URLSearchParams`, or anything else with a text of its own.
      if (body.constructor === Object || Array.isArray(body))
        throw new TypeError("the body is a string or bytes: write objects with JSON.stringify");
      body = utf8(body);
    } else body = bytes(body);
    const method = text(init.method ?? "GET").toUpperCase();
    const { value, body: received } = await ask({ call: "fetch", method, url: text(resource), headers }, body);
    return new Response(value, received);
  };
  define("fetch", fetch);

  const ctx = {
    ...given,
    log: log(1),
    fetch,
    items: {
      find: (collection, query = {}) => plain({ call: "items_find", collection: text(collection), query }),
      get: (collection, id) => plain({ call: "items_get", collection: text(collection), id: text(id) }),
    },
    kv: {
      get: (key) => plain({ call: "kv_get", key: text(key) }),
      set: async (key, value) => {
        if (value === undefined) throw new TypeError("undefined cannot be kept: delete the key");
        await plain({ call: "kv_set", key: text(key), value });
      },
      delete: async (key) => {
        await plain({ call: "kv_delete", key: text(key) });
      },
    },
  };
  return async (program) => program(ctx);
})
