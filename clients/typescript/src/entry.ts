// The one type of the protocol that a schema cannot say in TypeScript.

/**
 * The `type` of an entry that is none of the known ones: any other string (`String(entry.type)`).
 * It is no `string` here so that comparing `entry.type` with a known type tells the entries apart.
 */
export declare enum OtherType {
  any = 'any other type',
}
