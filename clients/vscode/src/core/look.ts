// How rows look: icons by kind, what is said beside them.

import type { TreeNode } from 'treelined';
import { count, shorten, unitRanges } from './text.js';

/** The look of a row. `icon` is the name of a codicon, `color` that of a theme colour. */
export interface Look {
  label: string;
  /** Parts of the label that the query found, in UTF-16 code units. */
  highlights: [number, number][];
  description: string;
  icon: string;
  color?: string;
  /** The words of a screen reader. */
  spoken: string;
}

const ICONS: Partial<Record<string, string>> = {
  user: 'account',
  assistant: 'sparkle',
  toolResult: 'tools',
  bashExecution: 'terminal',
  branch_summary: 'note',
  compaction: 'fold',
  custom_message: 'comment',
  custom: 'package',
  label: 'tag',
  session_info: 'info',
  model_change: 'settings-gear',
  thinking_level_change: 'settings-gear',
  mode_change: 'settings-gear',
  context_edit: 'edit',
  usage: 'graph',
};

const STYLES: Partial<Record<string, string>> = {
  accent: 'charts.blue',
  success: 'charts.green',
  warning: 'charts.yellow',
  error: 'charts.red',
  dim: 'disabledForeground',
};

/** The words of all clients (protocol.md §6.9). */
const NAMES: Partial<Record<string, string>> = {
  toolResult: 'tool',
  bashExecution: 'shell',
  branchSummary: 'summary',
  branch_summary: 'summary',
  compactionSummary: 'compaction',
  custom_message: 'note',
  thinking_level_change: 'thinking',
  model_change: 'model',
  mode_change: 'mode',
  context_edit: 'edit',
  session_info: 'name',
};

/** The kind of a row in a word: its role, else its type. */
export function kindOf(row: TreeNode): string {
  const kind = row.role ?? row.type;
  return NAMES[kind] ?? kind;
}

/** How many sessions of which kind come from a row, such as `1 fork, 2 subagents`; empty without any. */
export function bornText(row: TreeNode): string {
  const counts = new Map<string, number>();
  for (const { kind } of row.sessions ?? []) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, number]) => count(number, kind, `${kind}s`)).join(', ');
}

export function lookOf(row: TreeNode): Look {
  const { preview, match, label, isLeaf } = row;
  const icon = row.folded
    ? 'git-branch'
    : row.isError
      ? 'error'
      : (ICONS[row.role ?? row.type] ?? 'circle-small');
  const color = isLeaf
    ? 'charts.green'
    : row.isError
      ? 'charts.red'
      : (STYLES[row.style ?? ''] ?? (row.onActivePath ? undefined : 'disabledForeground'));
  const shown = match?.snippet ?? (preview || `(${kindOf(row)})`);
  const name = row.folded ? undefined : row.branchName;
  const born = bornText(row);
  // The order is that of all clients (protocol.md §6.9). The icon of VS Code is in place of the word.
  const marks = [
    isLeaf && '◉',
    name !== undefined && `${name} ·`,
    born !== '' && `↗ ${born} ·`,
    label !== undefined && `[${label}]`,
    // The preview of a call says that it failed.
    row.isError && !row.toolCall && '✗',
    row.icon,
    row.tokens !== undefined && !match && `${row.tokens} tokens before:`,
  ];
  const text = [...marks, shown].filter(Boolean).join(' ');
  const shift = text.length - shown.length;
  const highlights = match ? unitRanges(match.snippet, match.ranges) : [];
  // Only the row where an archived branch begins says so.
  const isArchived = row.archived === true && (row.folded ?? row.opened?.expand) !== undefined;
  const flags = row.flags ?? [];
  const description = [
    flags.length > 0 && `(${flags.join(', ')})`,
    isArchived && '(archived)',
    isLeaf && '← active',
  ].filter((part) => part !== false);
  return {
    label: text,
    highlights: highlights.map(([from, to]) => [from + shift, to + shift]),
    description: description.join(' '),
    icon,
    ...(color && { color }),
    spoken: [
      ...[kindOf(row), name, born, label, preview, row.isError && 'failed'],
      ...[...flags, isArchived && 'archived', isLeaf && 'leaf'],
    ]
      .filter(Boolean)
      .join(', '),
  };
}

/** The beginning of a sentence about turns on a newer branch. */
export function newerText(turns: number): string {
  if (turns === 0) return 'Newer entries are';
  return turns === 1 ? '1 newer turn is' : `${turns} newer turns are`;
}

/** The position of a session for the status bar. */
export function positionText(
  title: string,
  leaf: TreeNode | undefined,
  othersMoved: boolean,
): string {
  const at =
    leaf === undefined ? 'at the beginning' : `${kindOf(leaf)}: ${shorten(leaf.preview, 40)}`;
  return `$(git-branch) ${shorten(title, 24)} · ${at}${othersMoved ? ' $(person-add)' : ''}`;
}
