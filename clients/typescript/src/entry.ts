// A type of the protocol that its schema cannot express in TypeScript.

/**
 * The `type` of an entry or block, or the `role` of a message, that the protocol does not know. It may be any other
 * string: `String(entry.type)` is this string. Its declared type is not `string`, so that comparing `entry.type` with
 * a known type narrows the union.
 */
export declare enum OtherType {
  any = 'any other type',
}

/** Makes a type or role that only this client knows, for entries to append. */
export function otherType(name: string): OtherType {
  return name as unknown as OtherType;
}
