// The text of entries as Markdown for people. Markdown in a message is kept.

import type { Entry } from 'treelined';

/**
 * The members of entries and messages that contain text. All are optional, since other programs write session files
 * too.
 */
interface Loose {
  type?: unknown;
  role?: unknown;
  message?: Loose;
  content?: unknown;
  command?: unknown;
  output?: unknown;
  summary?: unknown;
  errorMessage?: unknown;
  toolName?: unknown;
  customType?: unknown;
  timestamp?: unknown;
}

const NAMES: Partial<Record<string, string>> = {
  toolResult: 'tool',
  bashExecution: 'shell',
  branch_summary: 'summary of a branch',
  custom_message: 'note of a program',
};

/** The speaker of an entry, such as `user` or `tool bash`. */
export function speaker(entry: Entry): string {
  const { type, message, toolName, customType } = entry as Loose;
  const role = string(message?.role) ?? string(type) ?? 'entry';
  const detail = string(message?.toolName ?? toolName) ?? string(customType);
  return [NAMES[role] ?? role, detail].filter(Boolean).join(' ');
}

/** Returns the text of an entry. */
export function entryText(entry: Entry): string {
  const loose = entry as Loose;
  const message = loose.message ?? loose;
  const command = string(message.command);
  if (command !== undefined)
    return fence(`$ ${command}\n${string(message.output) ?? ''}`, 'console');
  const { content } = message;
  const isTool = message.role === 'toolResult';
  const text =
    typeof content === 'string'
      ? content
      : Array.isArray(content)
        ? content.map(blockText).join('\n\n')
        : (string(message.summary) ?? string(message.errorMessage));
  if (text === undefined) return fence(JSON.stringify(entry, null, 2), 'json');
  return isTool ? fence(text, '') : text;
}

/** Returns an entry as a document: a heading with the speaker and the time, followed by the text. */
export function entryDocument(entry: Entry): string {
  const { timestamp } = entry as Loose;
  return `### ${speaker(entry)} · ${string(timestamp) ?? ''}\n\n${entryText(entry)}\n`;
}

function blockText(block: unknown): string {
  if (typeof block !== 'object' || block === null) return String(block);
  const { type, text, thinking, name } = block as Record<string, unknown>;
  if (type === 'text') return string(text) ?? '';
  if (type === 'thinking') return `> (thinking)\n${(string(thinking) ?? '').replace(/^/gm, '> ')}`;
  if (type === 'toolCall') {
    const { arguments: given } = block as { arguments?: unknown };
    return `calls **${String(name)}**\n\n${fence(JSON.stringify(given ?? {}, null, 2), 'json')}`;
  }
  return `(${String(type)})`;
}

/** Returns a code block whose fence is longer than any in `text`. */
function fence(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const ticks = '`'.repeat(longest + 1);
  return `${ticks}${language}\n${text}\n${ticks}`;
}

function string(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
