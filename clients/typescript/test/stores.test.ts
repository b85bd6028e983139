// Tests of the session ids for keys.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { sessionIdOfKey } from 'treelined';
import { packageDir } from './fixture.js';

test('ids are those of every other client', async () => {
  const file = new URL('../../tests/data/stores/ids.json', packageDir);
  const ids = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>;
  for (const [key, id] of Object.entries(ids)) assert.equal(sessionIdOfKey(key), id, key);
  assert.ok(Object.keys(ids).length > 10);
});
