// `structuredClone`, compiled when a program first uses it.
(function () {
  "use strict";
  const refuse = (what) => {
    const error = new Error(`${what} cannot be cloned`);
    error.name = "DataCloneError";
    throw error;
  };
  const clone = (value, seen) => {
    if (typeof value === "function") refuse("a function");
    if (typeof value === "symbol") refuse("a symbol");
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => {
      seen.set(value, made);
      return made;
    };
    if (Array.isArray(value)) {
      const made = keep(new Array(value.length));
      for (const key of Object.keys(value)) made[key] = clone(value[key], seen);
      return made;
    }
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Map) {
      const made = keep(new Map());
      for (const [key, one] of [...value]) made.set(clone(key, seen), clone(one, seen));
      return made;
    }
    if (value instanceof Set) {
      const made = keep(new Set());
      for (const one of [...value]) made.add(clone(one, seen));
      return made;
    }
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = clone(value.buffer, seen);
      const length = value instanceof DataView ? value.byteLength : value.length;
      return keep(new value.constructor(buffer, value.byteOffset, length));
    }
    if (value instanceof Error) {
      const known = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];
      const made = keep(new (known.find((one) => value.name === one.name) ?? Error)(value.message));
      return made;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) refuse("this object");
    if (value instanceof Boolean || value instanceof Number || value instanceof String) return keep(Object(value.valueOf()));
    const made = keep({});
    for (const key of Object.keys(value)) made[key] = clone(value[key], seen);
    return made;
  };
  return { structuredClone: (value) => clone(value, new Map()) };
})
