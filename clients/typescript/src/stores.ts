// Ids for packages that keep the sessions of another program, whose keys are any text.

import { createHash } from 'node:crypto';

const ID = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const LONGEST = 128;
const HASHED = 'k-';

/**
 * Returns the id of the session of a key: the key itself where it is a valid id. Any other key, and one that begins like
 * a hashed one, has the id `k-` and 40 hexadecimal digits of its SHA-256. The session has the key in full, so that its
 * user can compare it (`schema/stores.md`). The ids are those of `treelined.stores` of the Python client.
 */
export function sessionIdOfKey(key: string): string {
  if (ID.test(key) && key.length <= LONGEST && !key.startsWith(HASHED)) return key;
  const hash = createHash('sha256');
  // A lone surrogate has no UTF-8: it is hashed as the three bytes that its number would have.
  for (const piece of key.split(/(\p{Surrogate})/u)) {
    const code = /^\p{Surrogate}$/u.test(piece) ? piece.charCodeAt(0) : undefined;
    hash.update(
      code === undefined
        ? piece
        : Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]),
    );
  }
  return `${HASHED}${hash.digest('hex').slice(0, 40)}`;
}
