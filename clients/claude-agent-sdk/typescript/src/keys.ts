// Keys of sessions, and the ids that they have in treelined.

import type { SessionKey } from '@anthropic-ai/claude-agent-sdk';
import { sessionIdOfKey } from 'treelined';

/** Any object that was JSON. */
export type Json = Record<string, unknown>;

/** Project, session, and the sub-path of a subagent. */
export type Parts = readonly [project: string, session: string, subpath?: string];

/** The id of the entry that has the key. A `uuid` with this beginning is hashed, so none has it. */
export const HEAD = 'k-key';
export const HEAD_TYPE = 'claude-agent-sdk.key';

/** Returns the parts of a key. Throws for an empty sub-path. */
export function partsOf(key: SessionKey): Parts {
  const { projectKey, sessionId, subpath } = key;
  if (subpath === '') {
    throw new RangeError('the subpath is empty: leave it out for the main transcript');
  }
  return subpath === undefined ? [projectKey, sessionId] : [projectKey, sessionId, subpath];
}

/**
 * Returns the key as a JSON array in ASCII, the same in Python and JavaScript. A lone surrogate is an escape there, so
 * that it is hashed alike too.
 */
export function textOf(parts: Parts): string {
  return JSON.stringify(parts).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns the id of the session of a key. It begins with `k-`: the array is not a valid id. */
export function sessionOf(parts: Parts): string {
  return sessionIdOfKey(textOf(parts));
}

/** Returns the key that the first entry of a session has, if it is that of a store. */
export function keyIn(entry: Json, session: string): Parts | undefined {
  const text = isObject(entry.data) ? entry.data.key : undefined;
  if (entry.customType !== HEAD_TYPE || typeof text !== 'string') return undefined;
  // A fork that treelined has made has the key of its source.
  if (sessionIdOfKey(text) !== session) return undefined;
  const parts = parsed(text);
  return Array.isArray(parts) ? (parts as unknown as Parts) : undefined;
}

/** Returns the id of the entry of a record, if it has a `uuid`. */
export function entryId(uuid: unknown): string | undefined {
  // `root` is the position before the first entry.
  return typeof uuid === 'string' && uuid !== 'root' ? sessionIdOfKey(uuid) : undefined;
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value of a JSON text, or undefined if it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
