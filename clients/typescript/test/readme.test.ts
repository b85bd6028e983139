// The example of the README, in Node and in Bun.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { command, folder, packageDir } from './fixture.js';

const output = `moved to MOVED (navigate_tree)
again: By plane.
Plan a trip to Rome.
By train?
├─ By plane.
│  At noon, then.
└─ [by plane] A flight at noon; see a2.
entryNotFound
`;

for (const runtime of [
  process.execPath,
  fileURLToPath(new URL('node_modules/.bin/bun', packageDir)),
]) {
  test(`the example of the README runs in ${runtime.split('/').at(-1)}`, async (t) => {
    const readme = await readFile(new URL('README.md', packageDir), 'utf8');
    const [, example] = /```js\n(.*?)```/s.exec(readme) ?? [];
    assert(example);
    const lines = example.split('\n').filter((line) => line.trim() !== '');
    assert(lines.length <= 32, `${lines.length} lines`);
    const script = fileURLToPath(new URL('build/readme.mjs', packageDir));
    await writeFile(script, example);

    const dir = await folder(t);
    const bin = command.includes('/') ? resolve(command) : command;
    if (command.includes('/')) {
      await access(bin);
      await symlink(bin, join(dir, 'treelined'));
    }
    const env = {
      ...process.env,
      PATH: `${dir}:${process.env.PATH}`,
      TREELINED_SESSION_DIR: join(dir, 'sessions'),
    };
    const { stdout, stderr } = await promisify(execFile)(runtime, [script], { env });
    assert.equal(stdout.replace(/moved to [0-9a-f]{8}/, 'moved to MOVED'), output);
    assert.equal(stderr, '');
  });
}
