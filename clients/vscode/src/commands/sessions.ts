// Commands about sessions: open, create, name, delete, restore, import, export.

import type { ImportFrom, SessionRow } from 'treelined';
import * as vscode from 'vscode';
import { exportTo, FORMATS, importFrom } from '../core/operations.js';
import { Session } from '../core/session.js';
import { sessionFacts, sessionTitle } from '../core/sessions.js';
import { ago } from '../core/text.js';
import { folders } from '../settings.js';
import type { SessionItem } from '../sessionsView.js';
import type { Parts } from './parts.js';

const TOOLS: readonly ImportFrom[] = [
  'auto',
  'claude-code',
  'codex',
  'opencode',
  'gemini',
  'goose',
  'pi',
  'qwen-code',
  'cline',
  'roo-code',
  'kilo-code',
  'copilot-cli',
  'vscode-chat',
  'chatgpt',
  'claude-ai',
];

/** The tools whose conversations are in a file that the person must download. */
const EXPORTS: readonly ImportFrom[] = ['chatgpt', 'claude-ai'];

export function sessionCommands({ app }: Parts) {
  return {
    'treelined.openSession': async (item?: SessionItem) => {
      const row = await rowOf(app, item);
      if (row) await app.open({ path: row.path });
    },
    'treelined.open': async () => {
      const row = await rowOf(app);
      if (row === undefined) return;
      await app.open({ path: row.path });
      await vscode.commands.executeCommand('treelined.tree.focus');
    },
    'treelined.openFile': async (uri?: vscode.Uri) => {
      const [file] = uri
        ? [uri]
        : ((await vscode.window.showOpenDialog({ filters: { Sessions: ['jsonl'] } })) ?? []);
      if (file) await app.open({ path: file.fsPath });
    },
    'treelined.new': async () => {
      const cwd = await directory();
      const name = await vscode.window.showInputBox({
        title: 'New session',
        prompt: 'A name; it may be empty.',
        ignoreFocusOut: true,
      });
      if (name === undefined) return;
      const params = { ...(name.trim() && { name }), ...(cwd && { cwd }) };
      app.show(await app.adopt(await Session.create(app.connection, params)));
    },
    'treelined.rename': async (item?: SessionItem) => {
      const session =
        item?.kind === 'session' ? await app.sessionOf(item.row.sessionId) : app.shown();
      const name = await vscode.window.showInputBox({
        title: 'Name of the session',
        value: session.title,
        ignoreFocusOut: true,
      });
      if (name !== undefined) await session.call('set_session_name', { name });
    },
  };
}

/** Commands about many sessions: filter, delete, restore, import, export. */
export function storeCommands({ app, sessions }: Parts) {
  return {
    'treelined.deleteSession': async (item?: SessionItem) => {
      const row = await rowOf(app, item);
      if (row === undefined) return;
      const { sessionId } = row;
      await app.connection.call('delete_session', { sessionId });
      if (app.session?.id === sessionId) app.hide();
      const message = `“${sessionTitle(row)}” is in the trash.`;
      void vscode.window.showInformationMessage(message, 'Restore').then((chosen) => {
        if (chosen) void app.run(() => app.connection.call('restore_session', { sessionId }));
      });
    },
    'treelined.restoreSession': async () => {
      const { sessions: deleted } = await app.connection.call('list_trash', {});
      const picks = deleted.map((row) => ({
        label: sessionTitle(row),
        description: `deleted ${ago(row.deletedAt)} ago`,
        row,
      }));
      const pick = await vscode.window.showQuickPick(picks, {
        title: 'Restore a session',
        placeHolder: picks.length === 0 ? 'The trash is empty.' : '',
      });
      if (pick === undefined) return;
      const { sessionId, trashedPath } = pick.row;
      await app.connection.call('restore_session', { sessionId, trashedPath });
      await app.open({ sessionId });
    },
    'treelined.filterSessions': async () => {
      const query = await vscode.window.showInputBox({
        title: 'Only sessions with these words',
        prompt: 'In the name, the first message, the directory or the id. Empty shows all.',
        value: app.sessions.query,
      });
      if (query === undefined) return;
      app.sessions.query = query.trim();
      sessions.refresh();
    },
    'treelined.import': async () => {
      const from = await vscode.window.showQuickPick([...TOOLS], {
        title: 'Import the conversations of which tool?',
        placeHolder: '“auto” finds all tools. Their files are not changed.',
      });
      if (from === undefined) return;
      const isExport = EXPORTS.includes(from as ImportFrom);
      const files = isExport
        ? await vscode.window.showOpenDialog({ filters: { Exports: ['zip', 'json'] } })
        : [];
      if (files === undefined) return;
      await app.progress('Importing', async (signal) => {
        const paths = files.map((file) => file.fsPath);
        const params = { from: from as ImportFrom, ...(isExport && { paths }) };
        void vscode.window.showInformationMessage(await importFrom(app.connection, params, signal));
      });
      sessions.refresh();
    },
    'treelined.export': async () => {
      const session = app.shown();
      const picks = FORMATS.map((each) => ({ ...each, label: each.format, detail: each.says }));
      const pick = await vscode.window.showQuickPick(picks, { title: 'Export the session as' });
      if (pick === undefined) return;
      const file = await vscode.window.showSaveDialog({
        title: 'Export the session',
        filters: { [pick.label]: [pick.ending] },
      });
      if (file === undefined) return;
      const said = await app.progress('Exporting', (signal) =>
        exportTo(session, pick.format, file.fsPath, signal),
      );
      if (said !== undefined) void vscode.window.showInformationMessage(said);
    },
  };
}

/** The session of the menu's item, or one that the person chooses. */
async function rowOf(app: Parts['app'], item?: SessionItem): Promise<SessionRow | undefined> {
  if (item?.kind === 'session') return item.row;
  const rows = await app.sessions.rows({ except: [] });
  const picks = rows.map((row) => ({
    label: sessionTitle(row),
    description: sessionFacts(row),
    detail: row.cwd,
    row,
  }));
  const options = { title: 'Session', matchOnDescription: true, matchOnDetail: true };
  return (await vscode.window.showQuickPick(picks, options))?.row;
}

/** The working directory of a new session. If there are several folders, the person chooses one. */
async function directory(): Promise<string | undefined> {
  const all = folders();
  if (all.length < 2) return all[0];
  return vscode.window.showQuickPick(all, { title: 'Directory of the new session' });
}
