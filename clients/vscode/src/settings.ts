// The settings `treelined.*`.

import type { TreeFilter } from 'treelined';
import * as vscode from 'vscode';
import { findDaemon } from './core/binary.js';
import type { Start } from './core/connection.js';

function get<T>(name: string, initial: T): T {
  return vscode.workspace.getConfiguration('treelined').get(name, initial);
}

export const settings = {
  get filter(): TreeFilter {
    return get<TreeFilter>('filter', 'default');
  },
  get pageSize(): number {
    return Math.max(20, get('pageSize', 200));
  },
  get summaries(): 'ask' | 'never' | 'always' {
    return get<'ask' | 'never' | 'always'>('summaries', 'ask');
  },
  get otherDirectories(): boolean {
    return get('otherDirectories', true);
  },
  get questions(): 'notification' | 'statusBar' {
    return get<'notification' | 'statusBar'>('questions', 'notification');
  },
};

/** Returns the options for the start of the daemon. Throws if its program is not found. */
export function startOptions(extensionDir: string): Start {
  const sessionDir = get<string>('sessionDirectory', '');
  const summarizer = get<string>('summarizer', '');
  return {
    command: findDaemon({ setting: get<string>('command', ''), extensionDir, env: process.env }),
    args: get<string[]>('arguments', []),
    shared: get('shared', false),
    cwd: folders()[0] ?? process.env.HOME ?? '/',
    ...(sessionDir && { sessionDir }),
    ...(summarizer && { summarizer }),
  };
}

/** Returns the workspace folders of this window that are on this machine. */
export function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? [])
    .filter(({ uri }) => uri.scheme === 'file')
    .map(({ uri }) => uri.fsPath);
}
