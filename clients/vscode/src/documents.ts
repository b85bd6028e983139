// Shows entries and comparisons as read-only documents.

import * as vscode from 'vscode';
import type { App } from './app.js';
import { compareBranches } from './core/compare.js';
import { entryDocument } from './core/entry.js';
import type { Session } from './core/session.js';
import { shorten } from './core/text.js';

const SCHEME = 'treelined';

/** The number of comparisons whose texts are kept, as documents. */
const KEPT = 20;

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #app: App;
  readonly #registration: vscode.Disposable;
  /** Sides of comparisons, by path. */
  readonly #texts = new Map<string, string>();
  #number = 0;

  constructor(app: App) {
    this.#app = app;
    this.#registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  dispose(): void {
    this.#registration.dispose();
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const text = this.#texts.get(uri.path);
    if (text !== undefined) return text;
    const [sessionId, entryId] = uri.query.split('&').map(decodeURIComponent);
    if (!sessionId || !entryId) return 'This comparison is over; compare again.';
    const session = await this.#app.sessionOf(sessionId);
    return entryDocument((await session.call('get_entry', { entryId })).entry);
  }

  /** Shows the whole text of an entry. */
  async show(session: Session, entryId: string, title: string): Promise<void> {
    const name = shorten(title.replace(/[/\\?#%\n]/g, ' '), 40).replace(/[.…]+$/, '') || entryId;
    const query = [session.id, entryId].map(encodeURIComponent).join('&');
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}.md`, query });
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: true, preserveFocus: true });
  }

  /** Shows two branches from their common ancestor on, in a diff editor. */
  async compare(session: Session, left: string, right: string): Promise<void> {
    const comparison = await compareBranches(session, left, right);
    this.#number += 1;
    const side = (name: string, text: string) => {
      const path = `/compare ${this.#number}/${name}.md`;
      this.#texts.set(path, text);
      return vscode.Uri.from({ scheme: SCHEME, path });
    };
    const uris = [side('left', comparison.left), side('right', comparison.right)] as const;
    for (const path of [...this.#texts.keys()].slice(0, -2 * KEPT)) this.#texts.delete(path);
    await vscode.commands.executeCommand('vscode.diff', ...uris, `Branches: ${comparison.title}`);
  }
}
