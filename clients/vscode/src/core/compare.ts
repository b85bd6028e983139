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
  'mode_change',
];

export interface Comparison {
  left: string;
  right: string;
  /** Says how much each side has, for the title of the diff. */
  title: string;
}

/** Entries that are asked for at once. */
const BATCH = 50;

/** The text of a side is cut after so many characters: an editor shows differences of large texts slowly. */
const MAX_CHARS = 1 << 20;

/** Compares the branches that end with the entries `left` and `right`. */
export async function compareBranches(
  session: Session,
  left: string,
  right: string,
  maxChars = MAX_CHARS,
): Promise<Comparison> {
  const { a, b } = await session.call('compare_branches', { a: left, b: right });
  const [own, other] = [
    await branchText(session, a.entryIds, maxChars),
    await branchText(session, b.entryIds, maxChars),
  ];
  const sizes = [own, other].map(({ entries }) => count(entries, 'entry', 'entries'));
  return { left: own.text, right: other.text, title: sizes.join(' ↔ ') };
}

/** The text of these entries as far as it has room, and the number of those that are in the conversation. */
async function branchText(
  session: Session,
  ids: string[],
  maxChars: number,
): Promise<{ text: string; entries: number }> {
  const sections: string[] = [];
  let [chars, read] = [0, 0];
  while (read < ids.length && chars < maxChars) {
    const batch = ids.slice(read, read + BATCH);
    read += batch.length;
    const answers = await Promise.all(
      batch.map((entryId) => session.call('get_entry', { entryId })),
    );
    for (const { entry } of answers) {
      if (BOOKKEEPING.includes(entry.type)) continue;
      sections.push(section(entry));
      chars += sections.at(-1)?.length ?? 0;
    }
  }
  const left = ids.length - read;
  const entries = sections.length + left;
  if (left > 0) sections.push(`### ${count(left, 'entry', 'entries')} more\n`);
  return { text: sections.join('\n'), entries };
}

/** Without times, which differ always and say nothing. */
function section(entry: Entry): string {
  return `### ${speaker(entry)}\n\n${entryText(entry)}\n`;
}
