// Continuing in another agent: what the agent gets and what is lost, and the command that makes its session
// (protocol.md §3.18).

import type { ContinueSessionResult } from 'treelined';
import type { Start } from './connection.js';
import { count, visible } from './text.js';

export type Agent = 'claude-code' | 'codex' | 'opencode' | 'gemini' | 'goose' | 'pi' | 'text';

/** The agents and their names. schema/agents.tsv has the list for all clients. */
export const AGENTS: readonly (readonly [Agent, string])[] = [
  ['claude-code', 'Claude Code'],
  ['codex', 'Codex'],
  ['opencode', 'opencode'],
  ['gemini', 'Gemini CLI'],
  ['goose', 'goose'],
  ['pi', 'pi'],
  ['text', 'any other agent, as a text'],
];

/** A way to shorten a conversation that is too large. */
export interface Shorter {
  label: string;
  /** The params for this choice, or the params that only ask for its size. For a question no summary is written. */
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

/** The parts that the agent gets and the parts that are lost, and the programs that are missing. */
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

/**
 * The command line for a shell. It has the options of the daemon, so that it uses the same session directory and
 * summarizer.
 */
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
  // A shell would run the text before a line break as a separate command. A mark of direction would change the order
  // of the shown words.
  if (visible(word) !== word) {
    throw new Error('A path or an id has a control character.');
  }
  return /^[\w./:=,@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
