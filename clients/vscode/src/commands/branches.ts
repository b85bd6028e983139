// Commands about branches: name them, archive and restore them, show and hide archived ones.

import * as vscode from 'vscode';
import {
  archiveBranch,
  askAside,
  type BranchChange,
  keepAside,
  nameBranch,
  unarchiveBranch,
} from '../core/branches.js';
import { shorten } from '../core/text.js';
import type { Item } from '../core/tree.js';
import { chosen } from './entries.js';
import type { Parts } from './parts.js';

export function branchCommands(parts: Parts) {
  const { app } = parts;
  /** Shows the change, with a button that undoes it. */
  const say = ({ text, undo }: BranchChange): void => {
    const buttons = undo ? [undo.title] : [];
    void vscode.window.showInformationMessage(text, ...buttons).then((pressed) => {
      if (pressed && undo) void app.run(async () => say(await undo.run()));
    });
  };
  /** The row of the item, if it stands for one branch. A row of several branches means none of them. */
  const rowOf = (item?: Item) => {
    const { kind, row } = chosen(parts, item);
    if (kind === 'branches') throw new Error('Open this row, and choose one of its branches.');
    return row;
  };
  return {
    'treelined.nameBranch': async (item?: Item) => {
      const row = rowOf(item);
      const session = app.shown();
      const name = await vscode.window.showInputBox({
        title: `Name of the branch: ${shorten(row.preview, 40)}`,
        prompt: 'Empty takes the name away.',
        ignoreFocusOut: true,
      });
      if (name !== undefined) say(await nameBranch(session, row.id, name));
    },
    'treelined.archiveBranch': async (item?: Item) => {
      say(await archiveBranch(app.shown(), rowOf(item).id));
    },
    'treelined.unarchiveBranch': async (item?: Item) => {
      say(await unarchiveBranch(app.shown(), rowOf(item).id));
    },
    'treelined.askAside': async () => {
      const session = app.shown();
      const question = await vscode.window.showInputBox({
        title: 'By the way',
        prompt: 'A question beside the conversation, which goes on without it.',
        ignoreFocusOut: true,
      });
      if (question?.trim()) say(await askAside(session, question.trim()));
    },
    'treelined.keepAside': async (item?: Item) => {
      say(await keepAside(app.shown(), rowOf(item).id));
    },
    'treelined.showArchived': async () => {
      const shown = app.tree;
      if (!shown?.state.archivedBranches) throw new Error('No branch is archived.');
      shown.setView({ archived: !shown.view.archived });
      await vscode.commands.executeCommand('treelined.refresh');
    },
  };
}
