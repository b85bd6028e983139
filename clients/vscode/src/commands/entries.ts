// Commands about an entry of the tree: show, label, compare, copy, fork, merge.

import type { TreeFilter } from 'treelined';
import * as vscode from 'vscode';
import { entryText } from '../core/entry.js';
import { kindOf } from '../core/look.js';
import { fork } from '../core/operations.js';
import { shorten } from '../core/text.js';
import type { EntryItem, Item } from '../core/tree.js';
import type { Parts } from './parts.js';

const FILTERS: readonly { label: TreeFilter; description: string }[] = [
  { label: 'default', description: 'the conversation' },
  { label: 'no-tools', description: 'without results of tools' },
  { label: 'user-only', description: 'messages of the user' },
  { label: 'labeled-only', description: 'entries with a label' },
  { label: 'all', description: 'everything that is stored' },
];

/** The entry for a command: the entry of the menu, or the selected one. */
export function chosen(parts: Parts, item?: Item): EntryItem {
  const entry = item && item.kind !== 'more' ? item : parts.tree.selected;
  if (entry === undefined) throw new Error('Select an entry of the tree first.');
  return entry;
}

export function entryCommands(parts: Parts) {
  const { app, tree, documents, composer } = parts;
  return {
    'treelined.show': async (item?: Item) => {
      const { row } = chosen(parts, item);
      await documents.show(app.shown(), row.id, `${kindOf(row)} ${row.preview}`);
    },
    'treelined.more': async (item: Item) => {
      if (item.kind === 'more') item.load();
    },
    'treelined.label': async (item?: Item) => {
      const { row } = chosen(parts, item);
      const label = await vscode.window.showInputBox({
        title: `Label: ${shorten(row.preview, 40)}`,
        prompt: 'Empty takes the label away.',
        value: row.label ?? '',
        ignoreFocusOut: true,
      });
      if (label !== undefined) await app.shown().call('append_label', { targetId: row.id, label });
    },
    'treelined.mark': async (item?: Item) => {
      app.markedId = chosen(parts, item).row.id;
      await vscode.commands.executeCommand('setContext', 'treelined.hasMark', true);
      vscode.window.setStatusBarMessage(
        'Marked: “Compare” on another entry compares the two.',
        5000,
      );
    },
    'treelined.compare': async (item?: Item) => {
      const { row } = chosen(parts, item);
      const session = app.shown();
      const other = app.markedId ?? session.leafId;
      if (other === null || other === row.id) {
        throw new Error('Choose an entry of another branch to compare it with this one.');
      }
      app.markedId = undefined;
      await documents.compare(session, row.id, other);
    },
    'treelined.copyText': async (item?: Item) => {
      const { row } = chosen(parts, item);
      const { entry } = await app.shown().call('get_entry', { entryId: row.id });
      await vscode.env.clipboard.writeText(entryText(entry));
    },
    'treelined.copyId': async (item?: Item) => {
      await vscode.env.clipboard.writeText(chosen(parts, item).row.id);
    },
    'treelined.cherryPick': async (item?: Item) => {
      const { row } = chosen(parts, item);
      const result = await app.shown().call('cherry_pick', { entryIds: [row.id] });
      await tree.reveal(result.leafId, false);
    },
    'treelined.fork': async (item?: Item) => {
      const { row } = chosen(parts, item);
      const made = await fork(app.connection, app.shown(), row.id);
      const session = await app.adopt(made.session);
      app.show(session);
      if (made.draft) await composer.begin(session.id, made.draft.text, made.draft.images);
    },
  };
}

/** Commands about the rows of the tree. */
export function rowCommands({ app, tree }: Parts) {
  return {
    'treelined.filter': async () => {
      const now = app.tree?.view.filter;
      const picks = FILTERS.map((filter) => ({ ...filter, picked: filter.label === now }));
      const pick = await vscode.window.showQuickPick(picks, { title: 'Which rows?' });
      if (pick) app.tree?.setView({ filter: pick.label });
      await vscode.commands.executeCommand('treelined.refresh');
    },
    'treelined.query': async () => {
      const query = await vscode.window.showInputBox({
        title: 'Search this session',
        prompt:
          'Words, or /a regular expression/. Whole texts are searched. Empty shows the tree again.',
        value: app.tree?.view.query ?? '',
      });
      if (query === undefined) return;
      app.tree?.setView({ query: query.trim() });
      await vscode.commands.executeCommand('treelined.refresh');
    },
    'treelined.clearQuery': async () => {
      const id = tree.selected?.row.id;
      app.tree?.setView({ query: '' });
      if (id === undefined) await vscode.commands.executeCommand('treelined.refresh');
      else await tree.reveal(id);
    },
    'treelined.focusLeaf': async () => {
      await vscode.commands.executeCommand('treelined.tree.focus');
      const { leafId } = app.shown();
      if (leafId !== null) await tree.reveal(leafId);
    },
    'treelined.refresh': async () => {
      app.changed.fire(undefined);
    },
  };
}
