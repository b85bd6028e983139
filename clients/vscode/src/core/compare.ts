// Compares two branches as two texts, from their common ancestor on.

import type { Entry } from 'treelined';
import { entryText, speaker } from './entry.js';
import type { Session } from './session.js';
import { count } from './text.js';

/** The types of entries that are not a part of the conversation. They are shown only in the tree. */
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
  /** The title of the diff, which says how many entries each side has. */
  title: string;
}

/** The number of entries in one request. */
const BATCH = 50;

/** The most characters of a side, since editors compare large texts slowly. A longer text is cut. */
const MAX_CHARS = 1 << 20;

/** Compares the branches whose last entries are `left` and `right`. */
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

/** The text of the entries, cut at the limit, and the number of entries that are part of the conversation. */
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

/** The text of an entry without its time, since times always differ. */
function section(entry: Entry): string {
  return `### ${speaker(entry)}\n\n${entryText(entry)}\n`;
}
