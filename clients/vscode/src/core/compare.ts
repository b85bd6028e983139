// Two branches as two texts, from where they part.

import type { Entry } from 'treelined';
import { entryText, speaker } from './entry.js';
import type { Session } from './session.js';
import { count } from './text.js';

/** Entries that say nothing to a reader: they are in the tree, not in the conversation. */
const BOOKKEEPING: readonly string[] = [
  'label',
  'session_info',
  'custom',
  'usage',
  'context_edit',
  'model_change',
  'thinking_level_change',
];

export interface Comparison {
  left: string;
  right: string;
  /** Says how much each side has, for the title of the diff. */
  title: string;
}

/** Compares the branches that end with the entries `left` and `right`. */
export async function compareBranches(
  session: Session,
  left: string,
  right: string,
): Promise<Comparison> {
  const [a, b] = await Promise.all(
    [left, right].map(async (entryId) => (await session.call('get_path', { entryId })).entries),
  );
  const [leftPath, rightPath] = [a ?? [], b ?? []];
  const common = leftPath.findIndex((entry, index) => entry.id !== rightPath[index]?.id);
  const part = common === -1 ? leftPath.length : common;
  const [own, other] = [leftPath, rightPath].map((path) =>
    path.slice(part).filter(({ type }) => !BOOKKEEPING.includes(type)),
  );
  const sides = [own ?? [], other ?? []] as const;
  const [l, r] = sides.map((entries) => entries.map(section).join('\n'));
  const title = `${count(sides[0].length, 'entry', 'entries')} ↔ ${count(sides[1].length, 'entry', 'entries')}`;
  return { left: l ?? '', right: r ?? '', title };
}

/** Without times, which differ always and say nothing. */
function section(entry: Entry): string {
  return `### ${speaker(entry)}\n\n${entryText(entry)}\n`;
}
