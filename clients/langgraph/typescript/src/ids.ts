// Ids of entries.

import { createHash } from 'node:crypto';

/** Returns the same id for the same parts, so that a repeated write is recognized. */
export function entryId(...parts: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}
