// The state of a window: the connection, the shown session, drafts and questions.

import type { OpenSessionParams, UserAsked } from 'treelined';
import * as vscode from 'vscode';
import { Connection } from './core/connection.js';
import { type Draft, Drafts } from './core/drafts.js';
import { Emitter } from './core/emitter.js';
import { problem } from './core/errors.js';
import { Questions } from './core/questions.js';
import { Session } from './core/session.js';
import { SessionList } from './core/sessions.js';
import { Tree } from './core/tree.js';
import { settings, startOptions } from './settings.js';

const SHOWN = 'session';
const DRAFTS = 'drafts';

export class App {
  readonly context: vscode.ExtensionContext;
  readonly connection: Connection;
  readonly questions = new Questions();
  readonly drafts: Drafts;
  readonly sessions: SessionList;
  readonly log = vscode.window.createOutputChannel('Treelined');
  /** The tree of the session that is shown. */
  tree: Tree | undefined;
  /** The entry with which others are compared. */
  markedId: string | undefined;
  /** The text of the status bar for the running move, compaction or command. */
  running: string | undefined;
  /** Fires when the tree, the session or its position has changed. */
  readonly changed = new Emitter<undefined>();
  /** The open sessions by their ids: the shown session, and those of drafts and documents. */
  readonly #open = new Map<string, Session>();

  constructor(context: vscode.ExtensionContext) {
    this.context = context;
    const { version } = context.extension.packageJSON as { version: string };
    this.connection = new Connection({
      isTrusted: () => vscode.workspace.isTrusted,
      start: () => startOptions(context.extensionPath),
      version,
      log: (text) => this.log.append(text),
      ask: (question: UserAsked, signal, extend) => this.questions.ask(question, signal, extend),
    });
    this.sessions = new SessionList(this.connection);
    const state = context.workspaceState;
    this.drafts = new Drafts({
      load: () => state.get<Record<string, Draft>>(DRAFTS),
      save: (drafts) => void state.update(DRAFTS, drafts),
    });
  }

  get session(): Session | undefined {
    return this.tree?.session;
  }

  /** The shown session. Without one it throws an error with advice. */
  shown(): Session {
    if (this.session === undefined)
      throw new Error('No session is open: choose one in the list of sessions.');
    return this.session;
  }

  /** Opens a session, and shows it. */
  async open(at: OpenSessionParams): Promise<Tree> {
    return this.show(await this.#keep(await Session.open(this.connection, at)));
  }

  /** Shows an open session. */
  show(session: Session): Tree {
    const { filter, pageSize } = settings;
    this.tree = new Tree(session, { filter, pageSize, query: '' });
    this.markedId = undefined;
    void this.context.workspaceState.update(SHOWN, session.id);
    void vscode.commands.executeCommand('setContext', 'treelined.hasSession', true);
    void this.#offerSummaries(session);
    this.changed.fire(undefined);
    return this.tree;
  }

  /** Offers merges and compactions if the daemon can write summaries. */
  async #offerSummaries(session: Session): Promise<void> {
    try {
      const { capabilities } = (await session.client()).server;
      const offered = capabilities.summarizer !== null;
      await vscode.commands.executeCommand('setContext', 'treelined.summarizes', offered);
    } catch {
      // The error about the end of the daemon says more.
    }
  }

  /** Registers a session that was created or forked. */
  async adopt(session: Session): Promise<Session> {
    return this.#keep(session);
  }

  /** Shows no session. */
  hide(): void {
    this.tree = undefined;
    void this.context.workspaceState.update(SHOWN, undefined);
    void vscode.commands.executeCommand('setContext', 'treelined.hasSession', false);
    this.changed.fire(undefined);
  }

  /** Returns an open session, or opens it without showing it. */
  async sessionOf(sessionId: string): Promise<Session> {
    return (
      this.#open.get(sessionId) ?? this.#keep(await Session.open(this.connection, { sessionId }))
    );
  }

  /** Shows the session that this window showed before it was reloaded. */
  async restore(): Promise<void> {
    const sessionId = this.context.workspaceState.get<string>(SHOWN);
    if (sessionId === undefined || this.tree || !vscode.workspace.isTrusted) return;
    await this.open({ sessionId }).catch((error: unknown) => this.log.appendLine(String(error)));
  }

  /** Returns the same object for the same session, so that all views use one object. */
  async #keep(session: Session): Promise<Session> {
    const known = this.#open.get(session.id);
    if (known !== undefined) {
      await session.close();
      return known;
    }
    this.#open.set(session.id, session);
    session.events.on((event) => {
      if (event.what === 'delta') return;
      if (event.what === 'damaged') {
        const damage = event.kinds.filter((kind) => kind !== 'logRewound');
        if (damage.length < event.kinds.length) {
          void vscode.window.showWarningMessage(
            `The team's stream has lost entries of “${session.title}”. \`treelined push\` gives them back.`,
          );
        }
        if (damage.length === 0) return;
        const kinds = damage.join(', ');
        void vscode.window.showWarningMessage(
          `The file of “${session.title}” is damaged (${kinds}). \`treelined doctor\` examines it.`,
        );
        return;
      }
      if (this.session === session) this.changed.fire(undefined);
    });
    return session;
  }

  /** Runs a command. Shows an error with what to do, and then returns undefined. */
  async run<T>(action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      await this.report(error);
      return undefined;
    }
  }

  /** Shows an error with a button for what to do. */
  async report(error: unknown): Promise<void> {
    const shown = problem(error);
    if (shown === undefined) return;
    this.log.appendLine(`${shown.kind}: ${shown.text}`);
    const { remedy } = shown;
    const show =
      shown.kind === 'nothingToUndo'
        ? vscode.window.showInformationMessage
        : vscode.window.showErrorMessage;
    // The command does not wait until the user closes the message.
    void show(shown.text, ...(remedy ? [remedy.title] : [])).then((chosen) => {
      if (chosen && remedy)
        void vscode.commands.executeCommand(remedy.command, ...(remedy.args ?? []));
    });
  }

  /** Runs long work. A notification shows it, and can cancel it. */
  async progress<T>(
    title: string,
    work: (signal: AbortSignal, say: (message: string) => void) => Promise<T>,
  ): Promise<T | undefined> {
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    this.running = title;
    this.changed.fire(undefined);
    return this.run(async () =>
      vscode.window.withProgress(options, (progress, token) => {
        const abort = new AbortController();
        token.onCancellationRequested(() =>
          abort.abort(new DOMException('cancelled', 'AbortError')),
        );
        return work(abort.signal, (message) => progress.report({ message }));
      }),
    ).finally(() => {
      this.running = undefined;
      this.changed.fire(undefined);
    });
  }

  async dispose(): Promise<void> {
    this.sessions.dispose();
    await this.connection.dispose();
    this.log.dispose();
  }
}
