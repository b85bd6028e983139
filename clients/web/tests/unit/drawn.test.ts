import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { ComponentChildren, VNode } from 'preact';
import { RowLine } from '../../src/view/tree.tsx';
import type { Row } from '../../src/wire.ts';

/** The drawing that all clients share. Programs of this folder run in the folder of the package. */
const fixture = JSON.parse(readFileSync('../../tests/data/rows/left.json', 'utf8')) as {
  nodes: Row[];
  lines: string[];
};

const CELLS: Partial<Record<string, string>> = {
  'guide down': '│  ',
  'guide fork': '├─ ',
  'guide end': '└─ ',
  'guide none': '   ',
};

type Props = Record<string, unknown> & { children?: ComponentChildren };

/** The text of what a component draws. Where the page has a style, the text has the sign of the other clients. */
function textOf(node: ComponentChildren): string {
  if (typeof node === 'string' || typeof node === 'number') return String(node);
  if (Array.isArray(node)) return node.map(textOf).join('');
  if (node === null || node === undefined || typeof node !== 'object') return '';
  const { type, props } = node as VNode<Props>;
  if (typeof type === 'function') return textOf((type as (of: Props) => VNode)(props));
  const inner = textOf(props.children);
  const kind = typeof props.class === 'string' ? props.class : '';
  // Cells are narrow, so the number takes two of them.
  if (kind === 'guide cut') return inner.padEnd(3);
  if (kind.startsWith('guide ')) return CELLS[kind] ?? '?';
  switch (kind.trim()) {
    case 'fold closed':
      return '⊞ ';
    case 'fold':
      return '⊟ ';
    case 'lead':
    case 'lead sr':
      return `${inner.padEnd(10)} `;
    case 'sr':
      return '';
    case 'label':
      return `[${inner}] `;
    case 'branch-name':
    case 'born':
      return `${inner} `;
    case 'flag':
    case 'away':
      return ` (${inner})`;
    case 'leaf':
      return ` ← ${inner}`;
    default:
      return inner;
  }
}

/** Each client once drew rows of its own tests only, so their marks and words stood at other places. */
test('the rows of the fixture are drawn as in all clients', () => {
  const drawn = fixture.nodes.map((row) =>
    textOf(RowLine({ row, query: undefined, marked: false, most: 5, toggle: () => undefined })),
  );
  assert.deepEqual(drawn, fixture.lines);
});
