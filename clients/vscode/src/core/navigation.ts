// Moves of the leaf to another position in the tree: which entries are left behind, the choice of a summary, the
// move, and its outcome.

import { randomUUID } from 'node:crypto';
import type { ContentBlock, Entry, NavigateTreeParams, TreeNode } from 'treelined';
import type { Session } from './session.js';
import { count, visible } from './text.js';

/** The effect that a move would have. */
export interface Plan {
  params: Pick<NavigateTreeParams, 'targetId' | 'rewind'>;
  /** The number of entries that are left behind. */
  leaves: number;
  /** Whether a summary of these entries can be written. */
  canSummarize: boolean;
  /** The reason why the move would change nothing, such as `alreadyThere`. */
  reason?: string;
}

export type SummaryChoice = 'none' | 'summary' | 'focus';

/** Messages for the reasons of a navigation's result. */
const REASONS: Partial<Record<string, string>> = {
  alreadyThere: 'The conversation is at this entry already.',
  nothingToSummarize: 'Moved. There was nothing to summarize.',
  cancelledByClient: 'The move was refused by a program or a hook; nothing was changed.',
  noAnswer: 'The move was not answered in time; nothing was changed.',
  hookFailed: 'A hook failed, so that nothing was moved; the log says why.',
  aborted: 'The move was aborted; nothing was changed.',
};

/** The verbs for the client or hook that prevented the change. */
const DEEDS: Partial<Record<string, string>> = {
  cancelledByClient: 'cancelled',
  hookFailed: 'failed',
};

/** Returns why nothing was changed, or why there is no summary. `message` is the text of `by` for people. */
export function reasonText(reason: string, by?: string, message?: string): string {
  const deed = DEEDS[reason];
  if (deed !== undefined && by !== undefined)
    return visible(`${by} ${deed}${message === undefined ? '.' : `: ${message}`}`);
  const text = REASONS[reason] ?? `The move ended: ${reason}.`;
  return by === undefined ? text : visible(`${text} (${by})`);
}

/** Asks the daemon what a move to `row` would leave behind. */
export async function plan(session: Session, row: TreeNode): Promise<Plan> {
  const params: Plan['params'] = { targetId: row.id };
  // If the row is the leaf, only a user message can be a target: the leaf moves before it.
  if (row.isLeaf && row.role === 'user') params.rewind = true;
  const result = await session.call('navigate_tree', { ...params, dryRun: true });
  if ('preparation' in result) {
    const { preparation, canSummarize } = result;
    return { params, leaves: preparation.abandonedCount, canSummarize };
  }
  return {
    params,
    leaves: 0,
    canSummarize: false,
    ...(result.reason && { reason: result.reason }),
  };
}

/** The choices of a person whose move leaves entries behind. */
export function summaryChoices({ leaves, canSummarize }: Pick<Plan, 'leaves' | 'canSummarize'>): {
  choice: SummaryChoice;
  label: string;
  detail: string;
}[] {
  const entries = count(leaves, 'entry', 'entries');
  const detail = `The ${entries} stay in the tree as a branch.`;
  if (!canSummarize) return [{ choice: 'none', label: '$(arrow-right) Go there', detail }];
  return [
    { choice: 'none', label: '$(arrow-right) Go without a summary', detail },
    {
      choice: 'summary',
      label: '$(note) Leave a summary',
      detail: `A summary of the ${entries} becomes the leaf, so that the model knows what was tried.`,
    },
    {
      choice: 'focus',
      label: '$(target) Leave a summary with a focus…',
      detail: 'You say what the summary shall be about.',
    },
  ];
}

/** The outcome of a move, for people. */
export interface Outcome {
  isMoved: boolean;
  message?: string;
  newLeafId: string | null;
  /** The text of the user message before which the leaf has moved. */
  draft?: { text: string; images: ContentBlock[] };
  summary?: Entry;
}

export interface MoveOptions {
  choice: SummaryChoice;
  focus?: string | undefined;
  label?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Called with the text of the summary so far. */
  onSummary?: (text: string) => void;
}

/** Moves the leaf. A move that is refused or aborted returns normally; every other failure throws. */
export async function move(session: Session, to: Plan, options: MoveOptions): Promise<Outcome> {
  const { choice, focus, label, signal, onSummary } = options;
  const navigationId = randomUUID();
  let text = '';
  const stop = session.events.on((event) => {
    if (event.what !== 'delta' || event.navigationId !== navigationId) return;
    text = event.index === 0 ? event.delta : text + event.delta;
    onSummary?.(text);
  });
  try {
    const params = {
      ...to.params,
      navigationId,
      ...(choice !== 'none' && { summarize: true }),
      ...(choice === 'focus' && focus?.trim() && { customInstructions: focus }),
      ...(label && { label }),
    };
    const result = await session.call('navigate_tree', params, { signal });
    if ('preparation' in result) throw new Error('a move was answered as a dry run');
    const { cancelled, reason, by, newLeafId, editorText, editorImages, summaryEntry } = result;
    const text = reason && reasonText(reason, by, result.message);
    return {
      isMoved: !cancelled && reason !== 'alreadyThere',
      newLeafId,
      ...(text && { message: text }),
      ...(editorText !== undefined && { draft: { text: editorText, images: editorImages ?? [] } }),
      ...(summaryEntry && { summary: summaryEntry }),
    };
  } finally {
    stop();
  }
}
