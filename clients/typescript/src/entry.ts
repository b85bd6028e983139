// The one type of the protocol that a schema cannot say in TypeScript.

/**
 * The `type` of an entry or a block of content, or the `role` of a message, that is none of the known
 * ones: any other string (`String(entry.type)`). It is no `string` here so that comparing `entry.type`
 * with a known type tells the entries apart.
 */
export declare enum OtherType {
  any = 'any other type',
}

/** A type or role of one's own, for what is appended. */
export function otherType(name: string): OtherType {
  return name as unknown as OtherType;
}
