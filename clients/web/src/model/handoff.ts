/** Continuing a conversation in another agent (protocol.md §3.18): what the agent gets, and the command to run. */

import type { LiveState } from './live-state.ts';
import { RpcError } from '../source/rpc.ts';
import { visible } from '../text/visible.ts';

export interface Agent {
  tool: string;
  name: string;
}

/** The agents. schema/agents.tsv has the list for all clients. */
export const AGENTS: readonly Agent[] = [
  { tool: 'claude-code', name: 'Claude Code' },
  { tool: 'codex', name: 'Codex' },
  { tool: 'opencode', name: 'opencode' },
  { tool: 'gemini', name: 'Gemini CLI' },
  { tool: 'goose', name: 'goose' },
  { tool: 'pi', name: 'pi' },
  { tool: 'text', name: 'any other agent, as a text' },
];

/** The size of a handoff and what is lost, from the result of `continue_session`. */
export interface HandoffPreview {
  messages: number;
  tokens: number;
  losses: { text: string }[];
  missing?: string[];
  text?: string;
}

/**
 * What happens to a conversation above the limit: it is refused, a summary replaces its beginning, or all of it is
 * handed over.
 */
export type HandoffSize = 'limited' | 'compacted' | 'whole';

const HINTS = new Map([
  ['contextTooLarge', 'Have the earlier turns summarized, or hand all of it over.'],
  ['summarizerUnavailable', 'No summarizer is configured. Go without a summary.'],
  ['invalidParams', 'Correct what the message names, or choose another entry.'],
  ['pathDenied', 'The folder of the agent is not absolute; look at its environment variable.'],
]);

export class Handoff {
  tool = AGENTS[0]?.tool ?? '';
  learned = false;
  size: HandoffSize = 'limited';
  preview: HandoffPreview | undefined;
  /** Why there is no preview, and what to do about it. */
  failure: { kind: string; message: string; hint: string } | undefined;
  private asked = 0;

  constructor(
    private readonly live: LiveState,
    readonly entryId: string,
  ) {
    this.ask();
  }

  get isText(): boolean {
    return this.tool === 'text';
  }

  /** Whether the person can choose a size. */
  get isLarge(): boolean {
    return this.size !== 'limited' || this.failure?.kind === 'contextTooLarge';
  }

  choose(change: Partial<Pick<Handoff, 'tool' | 'learned' | 'size'>>): void {
    Object.assign(this, change);
    // A text cannot begin with a summary of earlier turns.
    if (this.isText && this.size === 'compacted') this.size = 'limited';
    this.ask();
  }

  /**
   * Requests a preview, which writes nothing. Only for a text the request includes a summary: for other agents the
   * summary would be written twice.
   */
  ask(): void {
    const asked = ++this.asked;
    this.preview = undefined;
    this.failure = undefined;
    this.live.app.changed();
    if (this.size === 'compacted') return;
    const params = {
      sessionId: this.live.sessionId,
      entryId: this.entryId,
      tool: this.tool,
      dryRun: true,
      ...(this.isText && this.learned ? { learned: true } : {}),
      ...(this.size === 'whole' ? { limit: 0 } : {}),
    };
    this.live
      .call<HandoffPreview>('continue_session', params)
      .then((preview) => {
        if (asked !== this.asked) return;
        this.preview = preview;
        this.live.app.changed();
      })
      .catch((error: unknown) => {
        if (asked !== this.asked) return;
        const message = error instanceof Error ? error.message : String(error);
        const kind = error instanceof RpcError ? error.kind : '';
        this.failure = { kind, message, hint: HINTS.get(kind) ?? 'Nothing was changed.' };
        this.live.app.changed();
      });
  }

  /** The command that makes the new session and starts the agent; `undefined` if it is not safe to paste. */
  get command(): string | undefined {
    const { source, app, sessionId } = this.live;
    const session = source?.session.path ?? app.route.path ?? sessionId ?? '';
    const words = ['treelined', 'continue', '--in', this.tool];
    if (this.learned) words.push('--learned');
    if (this.size === 'compacted') words.push('--compact');
    if (this.size === 'whole') words.push('--limit', '0');
    // An id may begin with `-`, so it follows `--`.
    words.push('--', session, this.entryId);
    return isSafe(words) ? commandLine(words) : undefined;
  }
}

/**
 * Whether the words have no control characters. Quotes do not help: a terminal treats a pasted line break or escape
 * sequence as a key.
 */
export function isSafe(words: readonly string[]): boolean {
  return words.every((word) => visible(word) === word);
}

/** Quotes words for a shell. Without quotes zsh replaces `=word` by the path of a program. */
export function commandLine(words: readonly string[]): string {
  const quoted = words.map((word) =>
    /^(?!=)[\w\-./:=,@+]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`,
  );
  return quoted.join(' ');
}
