// Where the daemon's program is looked for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '../src/index.js';
import { findProgram } from '../src/program.js';

const platform = `@treelined/${process.platform}-${process.arch}`;
const installed = (path: string): string => `/modules/${path}`;
const missing = (path: string): string => {
  throw new Error(`Cannot find module '${path}'`);
};

test('TREELINED_BIN goes before the package of the platform, and that before the PATH', () => {
  const env = { TREELINED_BIN: '/own/treelined' };
  assert.equal(findProgram('treelined', env, installed).command, '/own/treelined');
  assert.equal(
    findProgram('treelined', {}, installed).command,
    `/modules/${platform}/bin/treelined`,
  );
  assert.equal(findProgram('treelined', {}, missing).command, 'treelined');
});

test('TREELINED_BIN names the daemon and no other program', () => {
  const found = findProgram('treelined-tui', { TREELINED_BIN: '/own/treelined' }, installed);
  assert.equal(found.command, `/modules/${platform}/bin/treelined-tui`);
});

test('the error for a missing daemon says what was tried', async () => {
  const env = { PATH: '/no/bin' };
  await assert.rejects(connect({ env }), (error: Error) => {
    assert.match(error.message, /no such program on the PATH \(\/no\/bin\)/);
    assert.match(error.message, /tried before: TREELINED_BIN, which is not set/);
    assert.ok(error.message.includes(`the package ${platform}`), error.message);
    return true;
  });
  await assert.rejects(connect({ env: { TREELINED_BIN: '/nowhere/treelined' } }), {
    message: /cannot start \/nowhere\/treelined.*by TREELINED_BIN/,
  });
});
