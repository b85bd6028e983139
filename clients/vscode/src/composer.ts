// Writes messages in untitled documents, which VS Code keeps when it restarts.

import type { ContentBlock } from 'treelined';
import * as vscode from 'vscode';
import type { App } from './app.js';

const CONTEXT = 'treelined.isDraft';

export class Composer implements vscode.Disposable {
  readonly #app: App;
  readonly #registrations: vscode.Disposable[];
  /** For each document that is an answer to a question, the function that gets its text. */
  readonly #answers = new Map<string, (text: string | undefined) => Promise<void>>();

  constructor(app: App) {
    this.#app = app;
    this.#registrations = [
      vscode.window.onDidChangeActiveTextEditor(() => this.#update()),
      // `onDidCloseTextDocument` is not used, since it also fires when the language changes.
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        for (const { input } of closed) {
          if (input instanceof vscode.TabInputText) this.#closed(input.uri);
        }
      }),
    ];
    this.#update();
  }

  dispose(): void {
    for (const registration of this.#registrations) registration.dispose();
  }

  /** Opens a document with a new message for a session. */
  async begin(sessionId: string, text = '', images: ContentBlock[] = []): Promise<void> {
    const document = await this.#document(text);
    this.#app.drafts.begin(document.uri.toString(), sessionId, images);
    await this.#show(document);
  }

  /** Opens a document for a longer answer. `send` gets its text, or undefined if the document is closed. */
  async answer(initial: string, send: (text: string | undefined) => Promise<void>): Promise<void> {
    const document = await this.#document(initial);
    this.#answers.set(document.uri.toString(), send);
    await this.#show(document);
  }

  /** Sends the document of the active editor. */
  async send(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document === undefined) return;
    const key = document.uri.toString();
    const text = document.getText();
    const answer = this.#answers.get(key);
    if (answer) {
      this.#answers.delete(key);
      await answer(text);
      await this.#finish(document, text);
      return;
    }
    const draft = this.#app.drafts.get(key);
    if (draft === undefined) throw new Error('This document is not a message for a session.');
    const session = await this.#app.sessionOf(draft.sessionId);
    await this.#app.drafts.send(key, text, session);
    await this.#finish(document, text);
  }

  async #document(content: string): Promise<vscode.TextDocument> {
    return vscode.workspace.openTextDocument({ language: 'markdown', content });
  }

  async #show(document: vscode.TextDocument): Promise<void> {
    await vscode.window.showTextDocument(document, { preview: false });
    this.#update();
  }

  /** Closes a document after its text was sent. Text that was typed since stays as a new draft. */
  async #finish(document: vscode.TextDocument, sent: string): Promise<void> {
    if (document.isClosed) return;
    const now = document.getText();
    if (now !== sent) {
      if (this.#app.session) this.#app.drafts.begin(document.uri.toString(), this.#app.session.id);
      void vscode.window.showInformationMessage('Sent. What you have typed since is still here.');
      this.#update();
      return;
    }
    // VS Code closes an empty untitled document without a question.
    const edit = new vscode.WorkspaceEdit();
    edit.replace(document.uri, new vscode.Range(0, 0, document.lineCount, 0), '');
    await vscode.workspace.applyEdit(edit);
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const own = tabs.filter(
      ({ input }) =>
        input instanceof vscode.TabInputText && input.uri.toString() === document.uri.toString(),
    );
    await vscode.window.tabGroups.close(own, true);
  }

  #closed(uri: vscode.Uri): void {
    const key = uri.toString();
    const answer = this.#answers.get(key);
    this.#answers.delete(key);
    if (answer) void answer(undefined);
    else this.#app.drafts.forget(key);
  }

  #update(): void {
    const key = vscode.window.activeTextEditor?.document.uri.toString() ?? '';
    const isDraft = this.#answers.has(key) || this.#app.drafts.get(key) !== undefined;
    void vscode.commands.executeCommand('setContext', CONTEXT, isDraft);
  }
}
