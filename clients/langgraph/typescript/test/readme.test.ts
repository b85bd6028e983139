// The example, and what the README says that it leaves; and the number of tests of LangGraph's suite.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { folder } from './fixture.js';

const home = new URL('../../', import.meta.url);

test('the suite has as many tests as the README says, and all have passed', async () => {
  const text = await readFile(new URL('build/suite.json', home), 'utf8');
  const { numPassedTests, numTotalTests } = JSON.parse(text) as Record<string, number>;
  assert.equal(numPassedTests, numTotalTests);
  const readme = await readFile(new URL('README.md', home), 'utf8');
  assert.match(readme, new RegExp(`all\\s${numTotalTests} tests`));
});

test('the example leaves the tree that the README shows', async (t) => {
  const env = { ...process.env, TREELINED_SESSION_DIR: await folder(t) };
  const how = { cwd: fileURLToPath(home), env, encoding: 'utf8' } as const;
  execFileSync(process.execPath, ['example.mjs'], how);
  const shown = execFileSync(process.env.TREELINED_BIN ?? 'treelined', ['tree', 'trip'], how);
  const readme = await readFile(new URL('README.md', home), 'utf8');
  const block = /```text\n([^`]*)```/.exec(readme)?.[1] ?? '';
  assert.ok(block.includes('By train'));
  assert.ok(shown.includes(block), shown);
});
