// Runs the examples of the README, in Node and in Bun.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { command, packageDir, shared } from './fixture.js';

const first = `moved to MOVED (navigate_tree)
again: By plane.
Plan a trip to Rome.
By train?
├─ By plane.
│  At noon, then.
└─ [by plane] A flight at noon; see a2.
entryNotFound
`;

const meeting = `host asks: Release 1.0?
released 1.0
host asks: Release 2.0?
commandFailed nobody agreed
⚑ version 1.0
`;

const runtimes = [
  process.execPath,
  fileURLToPath(new URL('node_modules/.bin/bun', packageDir)),
] as const;

for (const [runtime, number, output] of runtimes.flatMap((runtime) => [
  [runtime, 0, first] as const,
  [runtime, 1, meeting] as const,
])) {
  const name = runtime.split('/').at(-1);
  test(`example ${number + 1} of the README runs in ${name}`, async (t) => {
    const readme = await readFile(new URL('README.md', packageDir), 'utf8');
    const example = [...readme.matchAll(/```js\n(.*?)```/gs)][number]?.[1];
    assert(example);
    const lines = example.split('\n').filter((line) => line.trim() !== '');
    assert(lines.length <= 36, `${lines.length} lines`);
    const script = fileURLToPath(new URL('build/readme.mjs', packageDir));
    await writeFile(script, example);

    const { socket, sessionDir } = await shared(t);
    const dir = dirname(socket);
    const bin = command.includes('/') ? resolve(command) : command;
    if (command.includes('/')) {
      await access(bin);
      await symlink(bin, join(dir, 'treelined'));
    }
    const env = {
      ...process.env,
      PATH: `${dir}:${process.env.PATH}`,
      TREELINED_SESSION_DIR: sessionDir,
      TREELINED_SOCKET: socket,
    };
    const { stdout, stderr } = await promisify(execFile)(runtime, [script], { env });
    assert.equal(stdout.replace(/moved to [0-9a-f]{8}/, 'moved to MOVED'), output);
    assert.equal(stderr, '');
  });
}
