// Which values are JSON as they are.

/** Any object that was JSON. */
export type Json = Record<string, unknown>;

/** Nesting that a value in an entry may have; the daemon takes 256 levels. */
export const DEPTH = 48;

/**
 * Returns whether JSON gives exactly this value back, as the serializer of LangGraph would. An object with a member `lc`
 * is none of these: for the serializer it stands for another value.
 */
export function isPlain(value: unknown, depth = DEPTH): boolean {
  if (value === null || typeof value === 'boolean') return true;
  if (typeof value === 'string') return isText(value);
  if (typeof value === 'number') return Number.isFinite(value);
  if (depth <= 0 || typeof value !== 'object') return false;
  if (Array.isArray(value)) {
    // Not `every`, which passes over holes.
    for (const item of value) if (!isPlain(item, depth - 1)) return false;
    return true;
  }
  if (!isRecord(value)) return false;
  for (const name of Object.keys(value)) {
    if (!isText(name) || !isPlain(value[name], depth - 1)) return false;
  }
  return true;
}

/** Returns whether an object has nothing but members: it is not of a class, and not a form of a serializer. */
export function isRecord(value: unknown): value is Json {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return !('lc' in value || 'lg_name' in value) && !('toJSON' in value);
}

/** Copies plain JSON, since callers may change what they get. */
export function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copy) as T;
  if (typeof value !== 'object' || value === null) return value;
  const made: Json = {};
  for (const name of Object.keys(value)) define(made, name, copy((value as Json)[name]));
  return made as T;
}

/** Sets a member, also one with the name `__proto__`. */
export function define(object: Json | unknown[], name: string | number, value: unknown): void {
  if (name === '__proto__') {
    const how = { value, writable: true, enumerable: true, configurable: true };
    Object.defineProperty(object, name, how);
  } else {
    (object as Json)[name] = value;
  }
}

/** Returns whether an object has this member itself. */
export function has<N extends string>(value: unknown, name: N): value is Record<N, unknown> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name);
}

/** A lone surrogate has no UTF-8. */
function isText(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
