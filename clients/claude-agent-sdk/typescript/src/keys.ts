// The keys of sessions in the SDK, and their ids in treelined.

import type { SessionKey } from '@anthropic-ai/claude-agent-sdk';
import { sessionIdOfKey } from 'treelined';

/** An object of parsed JSON. */
export type Json = Record<string, unknown>;

/** The parts of a key: project, session, and for a subagent its sub-path. */
export type Parts = readonly [project: string, session: string, subpath?: string];

/** The id of the entry that stores the key. A `uuid` that begins like this is hashed, so no record has this id. */
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
 * Returns the key as a JSON array in ASCII, which is the same text in Python and JavaScript. A lone surrogate becomes
 * an escape in it, so its hash is the same too.
 */
export function textOf(parts: Parts): string {
  return JSON.stringify(parts).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns the session id for a key. It begins with `k-`, since the array is not a valid id. */
export function sessionOf(parts: Parts): string {
  return sessionIdOfKey(textOf(parts));
}

/** Returns the key in the first entry of a session; undefined if a store has not written this entry. */
export function keyIn(entry: Json, session: string): Parts | undefined {
  const text = isObject(entry.data) ? entry.data.key : undefined;
  if (entry.customType !== HEAD_TYPE || typeof text !== 'string') return undefined;
  // A fork that treelined has made contains the key of its source.
  if (sessionIdOfKey(text) !== session) return undefined;
  const parts = parsed(text);
  return Array.isArray(parts) ? (parts as unknown as Parts) : undefined;
}

/** Returns the entry id for a record; undefined if the record has no `uuid`. */
export function entryId(uuid: unknown): string | undefined {
  // `root` means the position before the first entry, so it cannot be an id.
  return typeof uuid === 'string' && uuid !== 'root' ? sessionIdOfKey(uuid) : undefined;
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses a JSON text; undefined if it is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
