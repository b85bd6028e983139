import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { TreeNode } from 'treelined';
import { kindOf, lookOf } from '../src/core/look.js';
import { packageDir } from './fixture.js';

/** The drawing that all clients share. */
const fixture = JSON.parse(
  readFileSync(new URL('../../tests/data/rows/left.json', packageDir), 'utf8'),
) as { nodes: TreeNode[]; lines: string[] };

/** Each client once drew rows of its own tests only, so their marks and words stood at other places. */
test('the rows of the fixture are drawn as in all clients', () => {
  // VS Code draws the guides, with an arrow where a branch is folded or open. A folded row has no word.
  const guides = /^(?:…\d+ +)?[│├└─ ]*(?:[⊞⊟] )?/u;
  const drawn = fixture.nodes.map((row) => {
    const { label, description } = lookOf(row);
    const word = row.folded ? '' : `${kindOf(row).padEnd(10)} `;
    // The mark of the leaf comes first, as that of the active path does in other clients.
    return `${word}${label.replace(/^◉ /u, '')} ${description}`.trimEnd();
  });
  assert.deepEqual(
    drawn,
    fixture.lines.map((line) => line.replace(guides, '')),
  );
});
