// The status bar: the position in the session, and waiting questions.

import * as vscode from 'vscode';
import type { App } from './app.js';
import { throttle } from './core/emitter.js';
import { positionText } from './core/look.js';
import { count } from './core/text.js';

/** The shortest time between two readings of the position, in milliseconds. */
const CHANGE_MS = 100;

export class StatusBar implements vscode.Disposable {
  readonly #app: App;
  readonly #position = vscode.window.createStatusBarItem(
    'treelined.position',
    vscode.StatusBarAlignment.Left,
    10,
  );
  readonly #questions = vscode.window.createStatusBarItem(
    'treelined.questions',
    vscode.StatusBarAlignment.Left,
    9,
  );
  readonly #stops: (() => void)[];

  constructor(app: App) {
    this.#app = app;
    this.#position.name = 'Treelined: Position';
    this.#position.command = 'treelined.focusLeaf';
    this.#questions.name = 'Treelined: Questions';
    this.#questions.command = 'treelined.answer';
    this.#questions.backgroundColor = new vscode.ThemeColor('statusBarItem.warningBackground');
    const read = throttle(CHANGE_MS, () => {
      // After the daemon has ended, the last position stays. The next command shows the error.
      void app.tree
        ?.position()
        .then(() => this.#update())
        .catch(() => {});
    });
    const change = () => {
      this.#update();
      if (app.connection.isRunning) read();
    };
    this.#stops = [
      app.changed.on(change),
      app.questions.changed.on(() => this.#update()),
      read.stop,
    ];
  }

  #update(): void {
    const { tree, running, questions } = this.#app;
    if (tree === undefined) this.#position.hide();
    else {
      const { session, leafRow } = tree;
      const position = positionText(session.title, leafRow, session.othersLeafId !== undefined);
      this.#position.text = running === undefined ? position : `$(sync~spin) ${running}`;
      this.#position.tooltip = `${session.title}\n${leafRow?.preview ?? ''}\nClick to show the leaf.`;
      this.#position.show();
    }
    const open = questions.all;
    if (open.length === 0) this.#questions.hide();
    else {
      this.#questions.text = `$(question) ${count(open.length, 'question')}`;
      this.#questions.tooltip = open.map(({ asked }) => `${asked.by}: ${asked.title}`).join('\n');
      this.#questions.show();
    }
  }

  dispose(): void {
    for (const stop of this.#stops) stop();
    this.#position.dispose();
    this.#questions.dispose();
  }
}
