/** Texts for rows and entries. */

import type { BornSession, Row } from '../wire.ts';
import { plural, visible } from '../text/visible.ts';

export type Tone = 'user' | 'assistant' | 'tool' | 'summary' | 'compaction' | 'custom' | 'quiet';

export function toneOf(row: { type: string; role?: string | undefined }): Tone {
  switch (row.type) {
    case 'message':
      if (row.role === 'user') return 'user';
      if (row.role === 'assistant') return 'assistant';
      if (row.role === 'toolResult' || row.role === 'bashExecution') return 'tool';
      if (row.role === 'branchSummary') return 'summary';
      if (row.role === 'compactionSummary') return 'compaction';
      return row.role === 'custom' ? 'custom' : 'quiet';
    case 'branch_summary':
      return 'summary';
    case 'compaction':
      return 'compaction';
    case 'custom_message':
      return 'custom';
    default:
      return 'quiet';
  }
}

/** The words of all clients (protocol.md §6.9). */
const SPEAKERS = new Map([
  ['toolResult', 'tool'],
  ['bashExecution', 'shell'],
  ['branchSummary', 'summary'],
  ['compactionSummary', 'compaction'],
  ['branch_summary', 'summary'],
  ['custom_message', 'note'],
  ['model_change', 'model'],
  ['thinking_level_change', 'thinking'],
  ['mode_change', 'mode'],
  ['context_edit', 'edit'],
  ['session_info', 'name'],
]);

export function speakerOf(row: { type: string; role?: string | undefined }): string {
  const word = row.type === 'message' ? (row.role ?? 'message') : row.type;
  return SPEAKERS.get(word) ?? visible(word);
}

/** Whether the word of a row is shown. If it is not, a style is in its place, and screen readers say the word. */
export function hasWord(row: Row): boolean {
  const tone = toneOf(row);
  if (tone === 'user' || tone === 'assistant' || tone === 'tool') return false;
  return tone !== 'custom' || row.icon === undefined;
}

const STYLES = new Set(['accent', 'success', 'warning', 'error', 'dim']);

/** The CSS class for the style of a renderer. */
export function styleClass(row: { style?: string }): string {
  return row.style !== undefined && STYLES.has(row.style) ? ` look-${row.style}` : '';
}

/** How many sessions of each kind come from a row. */
export function bornText(sessions: readonly BornSession[]): string {
  const counts = new Map<string, number>();
  for (const { kind } of sessions) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => plural(count, kind, `${kind}s`)).join(', ');
}
