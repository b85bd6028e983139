// Going on in another agent: what it gets and loses, and the command that makes its session (protocol.md §3.18).

import type { ContinueSessionResult } from 'treelined';
import type { Start } from './connection.js';
import { count } from './text.js';

export type Agent = 'claude-code' | 'codex' | 'opencode' | 'gemini' | 'goose' | 'pi' | 'text';

/** The agents with their names; schema/agents.tsv has the list that clients share. */
export const AGENTS: readonly (readonly [Agent, string])[] = [
  ['claude-code', 'Claude Code'],
  ['codex', 'Codex'],
  ['opencode', 'opencode'],
  ['gemini', 'Gemini CLI'],
  ['goose', 'goose'],
  ['pi', 'pi'],
  ['text', 'any other agent, as a text'],
];

/** A way to make a conversation that is too large shorter. */
export interface Shorter {
  label: string;
  /** The params that mean it, and those that ask for its size: nothing is summarized for a question. */
  params: { last?: number; compact?: boolean; limit?: number };
  asks: { last?: number; limit?: number };
  options: readonly string[];
}

export const SHORTER: readonly Shorter[] = [
  {
    label: 'Only the last 20 turns',
    params: { last: 20 },
    asks: { last: 20 },
    options: ['--last', '20'],
  },
  {
    label: 'Earlier turns as a summary',
    params: { compact: true },
    asks: { limit: 0 },
    options: ['--compact'],
  },
  { label: 'All of it', params: { limit: 0 }, asks: { limit: 0 }, options: ['--limit', '0'] },
];

/** The parts that are handed over and lost, and the programs that are missing. */
export function handedOver(
  result: Pick<ContinueSessionResult, 'messages' | 'tokens' | 'losses' | 'missing'>,
): string {
  const missing = (result.missing ?? []).map((program) => `${program} is not installed here`);
  return [
    `${count(result.messages, 'message')}, about ${count(result.tokens, 'token')}`,
    ...result.losses.map(({ text }) => `lost: ${text}`),
    ...missing,
  ].join('; ');
}

export interface Target {
  path: string;
  entryId: string;
  tool: Agent;
  options: readonly string[];
}

/** The command as a shell reads it. The options of the daemon find the same sessions and the same summarizer. */
export function commandLine(start: Start, { path, entryId, tool, options }: Target): string {
  const words = [
    start.command ?? 'treelined',
    ...(start.sessionDir ? ['--session-dir', start.sessionDir] : []),
    ...(start.summarizer ? ['--summarizer', start.summarizer] : []),
    ...(start.args ?? []),
    ...['continue', '--in', tool, ...options, '--', path, entryId],
  ];
  return words.map(quoted).join(' ');
}

function quoted(word: string): string {
  // A line break would run what is before it; a mark of direction would show other words.
  if (/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u.test(word)) {
    throw new Error('A path or an id has a control character.');
  }
  return /^[\w./:=,@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
