/** The search over the text of all sessions (protocol.md §3.16), for a question or for exactly the typed text. */

import type { LiveState } from './live-state.ts';
import { RpcError } from '../source/rpc.ts';

/** The modes of a search. `ask` ranks entries for a question; the other modes find exact matches. */
export const MODES = ['ask', 'words', 'literal', 'regex'] as const;
export type Mode = (typeof MODES)[number];

export interface Hit {
  sessionId: string;
  sessionName: string;
  entryId: string;
  field: string;
  at: string;
  snippet: string;
  ranges: [number, number][];
  branch: {
    onActivePath: boolean;
    leftAt?: string;
    /** Why the branch was left, and what was tried instead. Absent if this is not known. */
    reason?: { kind: string; entryId: string; text: string };
    instead?: { entryId: string; text: string };
    /** The branches that were left in the turn of the hit, the newest first. */
    leftInTurn?: {
      count: number;
      newest: { tipId: string; reason?: { text: string }; end?: { text: string } }[];
    };
  };
}

/** A word that no entry has, and similar words that occur. */
export interface NearWords {
  word: string;
  near: string[];
  /** The one of `near` whose entries are hits in place of the word. */
  taken?: string;
}

/** The range before the cursor that a completion replaces, in code points, and the possible texts. */
export interface Completion {
  start: number;
  end: number;
  items: { text: string; about?: string }[];
}

interface Answer {
  hits: Hit[];
  more?: { sessionId: string; count: number }[];
  didYouMean?: NearWords[];
}

/** A fault in the text, and its position in code points, if it is known. */
export interface Fault {
  reason: string;
  position?: number;
}

const HITS = 200;

/** After a key, the pause before a search, in milliseconds. */
const PAUSE = 150;

export class TextSearch {
  mode: Mode = 'ask';
  /** The only session that is searched, if there is one. */
  within: { sessionId: string; name: string } | undefined;
  hits: Hit[] = [];
  near: NearWords[] = [];
  fault: Fault | undefined;
  completion: Completion | undefined;
  running = false;
  /** For each session, the number of further entries that have words of the question. */
  private readonly more = new Map<string, number>();
  private text = '';
  private token: number | undefined;
  private abort: AbortController | undefined;

  constructor(private readonly live: LiveState) {}

  /** Whether the text may contain filters. */
  get hasFilters(): boolean {
    return this.mode === 'ask' || this.mode === 'words';
  }

  setMode(mode: Mode): void {
    this.mode = mode;
    this.search(this.text);
  }

  nextMode(): void {
    this.setMode(MODES[(MODES.indexOf(this.mode) + 1) % MODES.length] ?? 'ask');
  }

  searchWithin(session: { sessionId: string; name: string } | undefined): void {
    this.within = session;
    this.search(this.text);
  }

  /** The number of further entries of a session, if the hit `at` is its last one. */
  moreAfter(at: number): number {
    const id = this.hits[at]?.sessionId;
    if (id === undefined || this.hits.slice(at + 1).some(({ sessionId }) => sessionId === id))
      return 0;
    return this.more.get(id) ?? 0;
  }

  /** Searches for a text. `cursor` is the position of editing, in UTF-16 units. */
  search(text: string, cursor?: number): void {
    this.text = text;
    this.abort?.abort();
    this.clear();
    const query = text.trim();
    this.running = query.length > 1;
    this.live.app.changed();
    if (!this.running) return;
    const abort = new AbortController();
    this.abort = abort;
    setTimeout(() => {
      if (abort.signal.aborted) return;
      void this.ask(query, abort.signal);
      if (cursor !== undefined && this.hasFilters) void this.complete(text, cursor, abort.signal);
    }, PAUSE);
  }

  private clear(): void {
    this.hits = [];
    this.near = [];
    this.more.clear();
    this.fault = undefined;
    this.completion = undefined;
  }

  private async ask(query: string, signal: AbortSignal): Promise<void> {
    const { mode, within } = this;
    const params = {
      query,
      mode,
      limit: HITS,
      ...(this.hasFilters ? { syntax: 'filters' } : {}),
      ...(within ? { sessionId: within.sessionId } : {}),
    };
    const token = (id: number): void => {
      this.token = id;
    };
    try {
      const answer = await this.live.link?.call<Answer>('search', params, { signal, token });
      if (signal.aborted || !answer) return;
      this.hits = answer.hits;
      this.near = answer.didYouMean ?? [];
      for (const { sessionId, count } of answer.more ?? []) this.more.set(sessionId, count);
    } catch (error) {
      if (signal.aborted) return;
      this.fault = faultOf(error);
      if (!this.fault) this.live.app.failed(error);
    }
    this.running = false;
    this.live.app.changed();
  }

  /** Requests the completions at the cursor, if a word ends there. */
  private async complete(text: string, cursor: number, signal: AbortSignal): Promise<void> {
    const before = text.slice(0, cursor);
    if (!/\S$/u.test(before)) return;
    const position = Array.from(before).length;
    try {
      const found = await this.live.link?.call<Completion>(
        'complete_query',
        { query: text, position },
        { signal },
      );
      if (signal.aborted || !found) return;
      this.completion = found.items.length > 0 ? found : undefined;
      this.live.app.changed();
    } catch {
      // Without completions the person can type the text.
    }
  }

  /** Adds a hit that the daemon sends while the search runs. */
  hit(params: Record<string, unknown>): void {
    if (params.token !== this.token || this.abort?.signal.aborted) return;
    this.hits.push(params.hit as Hit);
    this.live.app.changed();
  }
}

/** The fault of a text that cannot be parsed; undefined for other failures. */
export function faultOf(error: unknown): Fault | undefined {
  if (!(error instanceof RpcError) || error.kind !== 'invalidParams') return undefined;
  const { field, reason, position } = error.details as Partial<
    Record<'field' | 'reason', string> & { position: number }
  >;
  if (field !== 'query' || reason === undefined) return undefined;
  return position === undefined ? { reason } : { reason, position };
}

/** The text with an item in place of the word before the cursor, and the cursor after the item, in UTF-16 units. */
export function completed(
  text: string,
  { start, end }: Completion,
  item: string,
): { text: string; cursor: number } {
  const chars = Array.from(text);
  const before = chars.slice(0, start).join('') + item;
  return { text: before + chars.slice(end).join(''), cursor: before.length };
}

/** The text in three parts: before the faulty word, the word, and after it. */
export function faultParts(
  text: string,
  { position }: Fault,
): [string, string, string] | undefined {
  if (position === undefined) return undefined;
  const chars = Array.from(text.trim());
  // If the fault is at the end, something is missing there, and the last character is marked.
  const from = Math.min(position, Math.max(0, chars.length - 1));
  const space = chars.findIndex((char, at) => at > from && /\s/u.test(char));
  const to = space < 0 ? chars.length : space;
  return [chars.slice(0, from).join(''), chars.slice(from, to).join(''), chars.slice(to).join('')];
}

/** The text with a known word in place of a word that no entry has. */
export function withWord(text: string, word: string, near: string): string {
  const escaped = word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  return text.replace(new RegExp(escaped, 'iu'), () => near);
}
