// The start and the end of the extension.

import * as vscode from 'vscode';
import { App } from './app.js';
import { Asking } from './asking.js';
import { branchCommands } from './commands/branches.js';
import { continuationCommands } from './commands/continuation.js';
import { entryCommands, rowCommands } from './commands/entries.js';
import { moveCommands } from './commands/moves.js';
import type { Parts } from './commands/parts.js';
import { programCommands } from './commands/programs.js';
import { searchCommands } from './commands/search.js';
import { sessionCommands, storeCommands } from './commands/sessions.js';
import { sortingCommands } from './commands/sorting.js';
import { Composer } from './composer.js';
import { Documents } from './documents.js';
import { PagePanel } from './pagePanel.js';
import { SessionsView } from './sessionsView.js';
import { StatusBar } from './status.js';
import { TreeView } from './treeView.js';

let app: App | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const made = new App(context);
  app = made;
  const composer = new Composer(made);
  const parts: Parts = {
    app: made,
    tree: new TreeView(made),
    sessions: new SessionsView(made),
    composer,
    documents: new Documents(made),
    asking: new Asking(made, composer),
    page: new PagePanel(made),
  };
  const status = new StatusBar(made);
  const { tree, sessions, documents, asking, page } = parts;
  context.subscriptions.push(tree, sessions, documents, asking, composer, page, status);
  const commands = {
    ...sessionCommands(parts),
    ...storeCommands(parts),
    ...searchCommands(parts),
    ...entryCommands(parts),
    ...rowCommands(parts),
    ...branchCommands(parts),
    ...sortingCommands(parts),
    ...moveCommands(parts),
    ...continuationCommands(parts),
    ...programCommands(parts),
  } as Record<string, (...args: never[]) => Promise<unknown>>;
  for (const [name, run] of Object.entries(commands)) {
    const command = (...args: never[]) => made.run(() => run(...args));
    context.subscriptions.push(vscode.commands.registerCommand(name, command));
  }
  context.subscriptions.push(
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      sessions.refresh();
      void made.restore();
    }),
    vscode.workspace.onDidChangeWorkspaceFolders(() => sessions.refresh()),
    vscode.workspace.onDidChangeConfiguration((change) => void configured(made, sessions, change)),
  );
  await made.restore();
}

export async function deactivate(): Promise<void> {
  await app?.dispose();
}

/** Changed settings of the daemon take effect at its next start. */
async function configured(
  made: App,
  sessions: SessionsView,
  change: vscode.ConfigurationChangeEvent,
): Promise<void> {
  const ofDaemon = ['command', 'arguments', 'shared', 'sessionDirectory', 'summarizer'];
  if (ofDaemon.some((name) => change.affectsConfiguration(`treelined.${name}`))) {
    if (made.connection.isRunning) await vscode.commands.executeCommand('treelined.restart');
    sessions.refresh();
  } else if (change.affectsConfiguration('treelined')) sessions.refresh();
}
