// Commands that move the leaf, or change the context.

import * as vscode from 'vscode';
import {
  move,
  type Outcome,
  type Plan,
  plan,
  reasonText,
  type SummaryChoice,
  summaryChoices,
} from '../core/navigation.js';
import { compact, mergeBranch } from '../core/operations.js';
import type { Session } from '../core/session.js';
import { shorten } from '../core/text.js';
import type { Item } from '../core/tree.js';
import { settings } from '../settings.js';
import { chosen } from './entries.js';
import type { Parts } from './parts.js';

export function moveCommands(parts: Parts) {
  const { app, tree } = parts;
  const step = async (method: 'undo_navigation' | 'redo_navigation') => {
    const since = tree.selections;
    const { newLeafId } = await app.shown().call(method, {});
    await tree.follow(newLeafId, since);
  };
  /** Runs an operation, and shows why it did not happen if it returns a reason. */
  const refusable = async (
    title: string,
    run: (signal: AbortSignal) => Promise<string | undefined>,
  ) => {
    const reason = await app.progress(title, run);
    if (reason !== undefined) void vscode.window.showInformationMessage(reason);
  };
  return {
    'treelined.navigate': async (item?: Item) => {
      const { row } = chosen(parts, item);
      const session = app.shown();
      const to = await plan(session, row);
      if (to.reason !== undefined) {
        void vscode.window.showInformationMessage(reasonText(to.reason));
        return;
      }
      const summary = await askSummary(to);
      if (summary) await go(parts, session, to, summary);
    },
    'treelined.undo': () => step('undo_navigation'),
    'treelined.redo': () => step('redo_navigation'),
    'treelined.abort': async () => {
      const { aborted } = await app.shown().call('abort_navigation', {});
      if (!aborted) void vscode.window.showInformationMessage('No move is running.');
    },
    'treelined.join': async () => {
      const session = app.shown();
      const { othersLeafId } = session;
      if (othersLeafId === undefined) throw new Error('No other program goes on elsewhere.');
      await session.call('set_leaf', { leafId: othersLeafId });
      if (othersLeafId !== null) await tree.reveal(othersLeafId, false);
    },
    'treelined.pop': async () => {
      const session = app.shown();
      const result = await app.progress('Going back', (signal) =>
        session.call('pop', { summarize: false }, { signal }),
      );
      if (result === undefined || 'preparation' in result) return;
      if (result.reason)
        void vscode.window.showInformationMessage(
          reasonText(result.reason, result.by, result.message),
        );
      if (result.editorText !== undefined) {
        await parts.composer.begin(session.id, result.editorText, result.editorImages ?? []);
      }
    },
    'treelined.merge': async (item?: Item) => {
      const { row } = chosen(parts, item);
      await refusable('Summarizing the branch', (signal) =>
        mergeBranch(app.shown(), row.id, signal),
      );
    },
    'treelined.compact': async () => {
      const focus = await vscode.window.showInputBox({
        title: 'Compact: replace the older part of the context by a summary',
        prompt: 'What the summary shall be about; it may be empty. The messages stay in the tree.',
        ignoreFocusOut: true,
      });
      if (focus === undefined) return;
      await refusable('Compacting', (signal) => compact(app.shown(), focus, signal));
    },
  };
}

interface Summary {
  choice: SummaryChoice;
  focus?: string;
}

/** Asks whether to summarize the entries that are left behind. Undefined: the person does not want to move. */
async function askSummary(to: Plan): Promise<Summary | undefined> {
  if (to.leaves === 0 || settings.summaries === 'never') return { choice: 'none' };
  if (settings.summaries === 'always' && to.canSummarize) return { choice: 'summary' };
  const pick = await vscode.window.showQuickPick(summaryChoices(to), {
    title: 'Go to this entry',
    placeHolder: 'What happens to the branch that is left behind?',
    ignoreFocusOut: true,
  });
  if (pick?.choice !== 'focus') return pick && { choice: pick.choice };
  const focus = await vscode.window.showInputBox({
    title: 'Focus of the summary',
    prompt: 'Such as: which fixes were tried and why they failed.',
    ignoreFocusOut: true,
  });
  return focus === undefined ? undefined : { choice: 'focus', focus };
}

async function go(parts: Parts, session: Session, to: Plan, summary: Summary): Promise<void> {
  const { app, composer, tree } = parts;
  const since = tree.selections;
  const title = summary.choice === 'none' ? 'Moving' : 'Writing the summary';
  const outcome = await app.progress(title, (signal, say) =>
    move(session, to, {
      ...summary,
      signal,
      // The end of the text is the newest part.
      onSummary: (text) => say(shorten(text.slice(-120), 120)),
    }),
  );
  if (outcome === undefined) return;
  if (outcome.draft) await composer.begin(session.id, outcome.draft.text, outcome.draft.images);
  announce(parts, outcome);
  if (outcome.isMoved) await tree.follow(outcome.newLeafId, since);
}

function announce({ app }: Parts, { isMoved, message, summary, draft }: Outcome): void {
  if (message !== undefined) void vscode.window.showInformationMessage(message);
  if (!isMoved) return;
  const moved = summary
    ? 'Moved. A summary of the branch is the leaf.'
    : 'Moved. The branch stays in the tree.';
  // Treelined does not run a model, so the text says how to continue.
  const text = `${moved} ${draft ? 'Send the text with Ctrl+Enter, then' : '“Write a Message” writes here,'} “Continue in Another Tool” goes on in another agent.`;
  void vscode.window.showInformationMessage(text, 'Undo').then((undo) => {
    if (undo) void app.run(() => app.shown().call('undo_navigation', {}));
  });
}
