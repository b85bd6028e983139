/** Queries as people type them: words, `"…"` phrases, and `/…/` for a regular expression. */

export interface Query {
  text: string;
  /** Folded words that must all occur, or a pattern. */
  words: string[];
  pattern: RegExp | undefined;
  error: string | undefined;
}

export function fold(text: string): string {
  return text.toLowerCase();
}

/** Returns undefined for a blank query. */
export function parseQuery(text: string): Query | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  const written = /^\/(.+)\/$/s.exec(trimmed)?.[1];
  if (written !== undefined) {
    try {
      const pattern = new RegExp(written, 'u');
      return { text: trimmed, words: [], pattern, error: undefined };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return { text: trimmed, words: [], pattern: undefined, error: reason };
    }
  }
  const words: string[] = [];
  for (const [, phrase, word] of trimmed.matchAll(/"([^"]*)"?|(\S+)/gu)) {
    const folded = fold(phrase ?? word ?? '').trim();
    if (folded !== '') words.push(folded);
  }
  return { text: trimmed, words, pattern: undefined, error: undefined };
}

/** The `query` and `mode` of `get_tree` and `search`. */
export function wireQuery(query: Query): { query: string; mode: 'words' | 'regex' } {
  if (query.pattern) return { query: query.pattern.source, mode: 'regex' };
  return { query: query.text, mode: 'words' };
}

/** Whether a folded text contains all words of a query. */
export function matches(query: Query, folded: string): boolean {
  return !query.error && query.words.every((word) => folded.includes(word));
}

/** The ranges in a text that match a query: `[start, end)` in UTF-16 units, ascending, at most `limit`. */
export function marksOf(query: Query | undefined, text: string, limit = 200): [number, number][] {
  if (!query || query.error) return [];
  const found: [number, number][] = [];
  for (const pattern of patterns(query)) {
    for (const match of text.matchAll(pattern)) {
      if (match[0] !== '') found.push([match.index, match.index + match[0].length]);
      if (found.length >= limit) break;
    }
  }
  found.sort((a, b) => a[0] - b[0]);
  const marks: [number, number][] = [];
  for (const [start, end] of found) {
    const last = marks.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else marks.push([start, end]);
  }
  return marks;
}

function patterns(query: Query): RegExp[] {
  if (query.pattern) return [new RegExp(query.pattern.source, 'gu')];
  return query.words.map((word) => new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu'));
}
