// Operations on whole sessions and branches, and the messages about their outcome.

import type { ContentBlock, ExportFormat, ImportFrom } from 'treelined';
import type { Connection } from './connection.js';
import { reasonText } from './navigation.js';
import { Session } from './session.js';

/** A new fork and, if it was forked before a user message, the text of this message as a draft. */
export interface Fork {
  session: Session;
  draft?: { text: string; images: ContentBlock[] };
}

/** Makes a session from the path to an entry. For a user message the path ends before it. */
export async function fork(
  connection: Connection,
  session: Session,
  entryId: string,
): Promise<Fork> {
  const result = await session.call('fork_session', { entryId });
  if (result.cancelled || !result.session)
    throw new Error('The fork was refused; nothing was made.');
  const made = await Session.adopt(connection, result.session);
  if (result.editorText === undefined) return { session: made };
  return { session: made, draft: { text: result.editorText, images: result.editorImages ?? [] } };
}

/** Appends a summary of another branch at the leaf. Returns the reason if it was not appended. */
export async function mergeBranch(
  session: Session,
  tipId: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const result = await session.call('merge_branch', { tipId }, signal && { signal });
  return result.reason && reasonText(result.reason, result.by, result.message);
}

/** Replaces the older part of the context by a summary. Returns the reason if it was not replaced. */
export async function compact(
  session: Session,
  focus: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const params = focus.trim() ? { customInstructions: focus } : {};
  const result = await session.call('compact', params, signal && { signal });
  return result.reason && reasonText(result.reason, result.by, result.message);
}

/** Imports the conversations of a tool, and returns a text with their number. */
export async function importFrom(
  connection: Connection,
  params: { from: ImportFrom; paths?: string[] },
  signal?: AbortSignal,
): Promise<string> {
  const options = { timeoutMs: Infinity, ...(signal && { signal }) };
  const { totals } = await connection.call('import_sessions', params, options);
  return `Imported: ${summaryOf(totals)}.`;
}

/** The formats of exports, with the extensions of their files. */
export const FORMATS: readonly { format: ExportFormat; ending: string; says: string }[] = [
  { format: 'html', ending: 'html', says: 'a page with the whole tree, which opens from disk' },
  { format: 'markdown', ending: 'md', says: 'the active branch as a document' },
  { format: 'text', ending: 'txt', says: 'the active branch as plain text' },
  { format: 'jsonl', ending: 'jsonl', says: 'a session file; secrets stay in it' },
];

/** Writes a session to a file, and replaces the file if it exists. Returns a text about what was left out. */
export async function exportTo(
  session: Session,
  format: ExportFormat,
  path: string,
  signal?: AbortSignal,
): Promise<string> {
  const options = { timeoutMs: Infinity, ...(signal && { signal }) };
  const { redactions } = await session.call(
    'export_session',
    { format, path, overwrite: true },
    options,
  );
  const kinds = redactions.map(({ kind, count: times }) => `${times} × ${kind}`);
  return kinds.length === 0 ? 'Exported.' : `Exported, without secrets: ${kinds.join(', ')}.`;
}

function summaryOf(totals: object): string {
  return Object.entries(totals)
    .filter(([, value]) => typeof value === 'number')
    .map(([name, value]) => `${value as number} ${name.replace(/([A-Z])/g, ' $1').toLowerCase()}`)
    .join(', ');
}
