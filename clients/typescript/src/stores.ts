// Session ids for packages that store the sessions of another program, whose keys may be any text.

import { createHash } from 'node:crypto';

const ID = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const LONGEST = 128;
const HASHED = 'k-';

/**
 * Returns the session id for a key. If the key is a valid id, it is the id. For any other key, and for a key that
 * looks like a hashed one, the id is `k-` and 40 hexadecimal digits of the key's SHA-256. The session stores the
 * whole key, so that a package can compare it (`schema/stores.md`). `treelined.stores` of the Python client returns
 * the same ids.
 */
export function sessionIdOfKey(key: string): string {
  if (ID.test(key) && key.length <= LONGEST && !key.startsWith(HASHED)) return key;
  const hash = createHash('sha256');
  // A lone surrogate cannot be encoded in UTF-8. It is hashed as the three bytes that its code point would have.
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
