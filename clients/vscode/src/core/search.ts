// The search over all sessions: questions and exact queries, the texts of hits, and the completion of filters.

import {
  type QueryCompletion,
  type SearchHit,
  type SearchResult,
  type SessionSearchMode,
  TreelinedError,
} from 'treelined';
import type { Connection } from './connection.js';
import { problem } from './errors.js';
import { ago, count, shorten } from './text.js';

/** The number of hits that are fetched. */
const LIMIT = 100;

/** The ways to understand a query, in the order in which they are offered. */
export const MODES: readonly { mode: SessionSearchMode; title: string; says: string }[] = [
  {
    mode: 'ask',
    title: 'Search all sessions',
    says: 'A question, with filters such as role:user since:2w, or /a regular expression/',
  },
  {
    mode: 'words',
    title: 'Search all sessions: all words',
    says: 'Words that an entry has all, and filters, or /a regular expression/',
  },
  {
    mode: 'literal',
    title: 'Search all sessions: exactly this text',
    says: 'A text, as it stands in an entry',
  },
];

/** The mode after `mode`. After the last one comes the first. */
export function nextMode(mode: SessionSearchMode): SessionSearchMode {
  const at = MODES.findIndex((each) => each.mode === mode);
  return MODES[(at + 1) % MODES.length]?.mode ?? 'ask';
}

export interface Query {
  typed: string;
  mode: SessionSearchMode;
  /** The id of the only session to search. */
  sessionId?: string | undefined;
  /** The directory to which a relative `cwd:` refers. */
  directory?: string | undefined;
}

/** The text of an item, and the query that it makes. */
export interface Completion {
  text: string;
  about: string;
  query: string;
}

/** The result of a query that is being typed. */
export interface Found {
  hits: SearchHit[];
  more: NonNullable<SearchResult['more']>;
  completions: Completion[];
  /** Why the query cannot be parsed, or which of its words no entry has. */
  note?: string;
}

/** Searches the texts of all sessions. An incomplete query is not an error: its fault is returned as the note. */
export async function search(
  connection: Connection,
  query: Query,
  signal: AbortSignal,
): Promise<Found> {
  const completions = query.mode === 'literal' ? [] : await complete(connection, query.typed);
  if (query.typed.trim() === '') return { hits: [], more: [], completions };
  try {
    const result = await connection.call('search', params(query), { signal });
    const { hits, more = [], didYouMean = [] } = result;
    const near = didYouMean.map(({ word, near: words, taken }) => {
      const others = words.filter((known) => known !== taken);
      const instead = taken === undefined ? [] : [`${taken} counts instead`];
      const meant = others.length > 0 ? [`did you mean ${others.join(', ')}?`] : [];
      return [`Nothing has “${word}”`, ...instead, ...meant].join('; ');
    });
    const note = near.join(' ') || (hits.length === 0 && 'Nothing matches.');
    return { hits, more, completions, ...(note && { note }) };
  } catch (error) {
    if (!(error instanceof TreelinedError && error.is('invalidParams'))) throw error;
    const text = problem(error)?.text ?? error.message;
    return { hits: [], more: [], completions, note: text };
  }
}

function params({ typed, mode, sessionId, directory }: Query) {
  const only = { query: typed, mode, limit: LIMIT, ...(sessionId && { sessionId }) };
  // A literal search has no filters.
  if (mode === 'literal') return only;
  return { ...only, syntax: 'filters' as const, ...(directory && { directory }) };
}

/** Returns the completions of the last word in a query; none after a blank. */
async function complete(connection: Connection, typed: string): Promise<Completion[]> {
  if (/\s$/.test(typed)) return [];
  const { start, end, items } = await connection.call('complete_query', { query: typed });
  const characters = Array.from(typed);
  const before = characters.slice(0, start).join('');
  const behind = characters.slice(end).join('');
  return items.map(({ text, about }: QueryCompletion) => ({
    text,
    about: about ?? '',
    query: `${before}${text}${behind}`,
  }));
}

/** A hit as an item of a list. */
export interface HitLook {
  label: string;
  description: string;
  detail: string;
}

export function hitLook({ snippet, field, sessionName, at, branch }: SearchHit): HitLook {
  const { onActivePath, reason, instead } = branch;
  // The list shows only one line. Why a branch was left says more than the name of the session.
  const story = [
    !onActivePath && 'a branch that was left',
    reason && `because: ${shorten(reason.text, 60)}`,
    instead && `instead: ${shorten(instead.text, 60)}`,
  ];
  const detail = [shorten(sessionName, 40), ago(at), ...story].filter(Boolean);
  return { label: shorten(snippet, 120), description: field, detail: detail.join(' · ') };
}

/** The text of the item for the other hits of a session. */
export function moreLook(number: number, sessionName: string): string {
  return `${count(number, 'more entry', 'more entries')} of ${shorten(sessionName, 60) || 'this session'}`;
}
