// The view of the sessions: first those of the folders of the window, then those of other directories.

import { basename } from 'node:path';
import type { SessionRow } from 'treelined';
import * as vscode from 'vscode';
import type { App } from './app.js';
import { sessionFacts, sessionTitle } from './core/sessions.js';
import { folders, settings } from './settings.js';

export type SessionItem =
  { kind: 'session'; row: SessionRow } | { kind: 'folder'; cwd: string } | { kind: 'others' };

export class SessionsView implements vscode.TreeDataProvider<SessionItem>, vscode.Disposable {
  readonly #app: App;
  readonly #emitter = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#emitter.event;
  readonly #view: vscode.TreeView<SessionItem>;
  readonly #stop: () => void;

  constructor(app: App) {
    this.#app = app;
    this.#view = vscode.window.createTreeView('treelined.sessions', { treeDataProvider: this });
    this.#stop = app.sessions.changed.on(() => this.refresh());
  }

  dispose(): void {
    this.#stop();
    this.#view.dispose();
    this.#emitter.dispose();
  }

  refresh(): void {
    this.#emitter.fire(undefined);
  }

  async getChildren(parent?: SessionItem): Promise<SessionItem[]> {
    if (!vscode.workspace.isTrusted) return [];
    const items = await this.#app.run(() => this.#children(parent));
    if (parent === undefined) {
      const { query } = this.#app.sessions;
      this.#view.description = query === '' ? '' : `“${query}”`;
    }
    return items ?? [];
  }

  async #children(parent: SessionItem | undefined): Promise<SessionItem[]> {
    const here = folders();
    if (parent?.kind === 'folder') return this.#rows({ cwd: parent.cwd });
    if (parent?.kind === 'others') return this.#rows({ except: here });
    if (parent !== undefined) return [];
    const [only] = here;
    if (only === undefined) return this.#rows({ except: [] });
    const items: SessionItem[] =
      here.length === 1
        ? await this.#rows({ cwd: only })
        : here.map((cwd) => ({ kind: 'folder', cwd }));
    if (!settings.otherDirectories) return items;
    const [other] = await this.#app.sessions.rows({ except: here }, 1);
    return other ? [...items, { kind: 'others' }] : items;
  }

  async #rows(of: { cwd: string } | { except: string[] }): Promise<SessionItem[]> {
    return (await this.#app.sessions.rows(of)).map((row) => ({ kind: 'session', row }));
  }

  getTreeItem(item: SessionItem): vscode.TreeItem {
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    if (item.kind === 'others') {
      const others = new vscode.TreeItem('Other directories', Collapsed);
      others.id = 'others';
      others.iconPath = new vscode.ThemeIcon('folder-library');
      return others;
    }
    if (item.kind === 'folder') {
      const folder = new vscode.TreeItem(basename(item.cwd), Expanded);
      folder.id = `folder ${item.cwd}`;
      folder.tooltip = item.cwd;
      folder.iconPath = new vscode.ThemeIcon('root-folder');
      return folder;
    }
    const { row } = item;
    const shown = new vscode.TreeItem(sessionTitle(row), None);
    shown.id = `session ${row.path}`;
    shown.description = sessionFacts(row);
    shown.tooltip = [row.firstMessage, row.cwd, row.diagnostic?.message].filter(Boolean).join('\n');
    shown.iconPath = new vscode.ThemeIcon(
      row.diagnostic ? 'warning' : row.parentSession ? 'repo-forked' : 'comment-discussion',
    );
    shown.contextValue = 'session';
    shown.command = { command: 'treelined.openSession', title: 'Open', arguments: [item] };
    return shown;
  }
}
