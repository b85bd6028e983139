// Questions and messages of other programs to the person at this window. They are shown as notifications, which take
// neither the focus nor a key. The prompt opens only when the person asks for it.

import * as vscode from 'vscode';
import type { App } from './app.js';
import type { Composer } from './composer.js';
import type { Question } from './core/questions.js';
import { settings } from './settings.js';

export class Asking implements vscode.Disposable {
  readonly #app: App;
  readonly #composer: Composer;
  readonly #stops: (() => void)[];

  constructor(app: App, composer: Composer) {
    this.#app = app;
    this.#composer = composer;
    this.#stops = [
      app.questions.changed.on((question) => {
        if (question && settings.questions === 'notification') void this.#announce(question);
      }),
      app.connection.notified.on(({ name, params }) => {
        if (name === 'user_notified') this.#say(params.level, `${params.by}: ${params.message}`);
      }),
    ];
  }

  dispose(): void {
    for (const stop of this.#stops) stop();
  }

  /** Opens the prompt of the oldest question, or of one that the person chooses. */
  async answer(): Promise<void> {
    const { all } = this.#app.questions;
    if (all.length === 0) {
      void vscode.window.showInformationMessage('Nobody has asked anything.');
      return;
    }
    const picks = all.map((question) => ({
      label: question.asked.title,
      description: question.asked.by,
      question,
    }));
    const pick =
      picks.length === 1
        ? picks[0]
        : await vscode.window.showQuickPick(picks, { title: 'Which question?' });
    if (pick) await this.#prompt(pick.question);
  }

  async #announce(question: Question): Promise<void> {
    const { by, title, message, kind, eventId } = question.asked;
    const buttons = kind === 'confirm' ? ['Yes', 'No', 'Dismiss'] : ['Answer…', 'Dismiss'];
    const text = [`${by} asks: ${title}`, message].filter(Boolean).join(' — ');
    const chosen = await vscode.window.showInformationMessage(text, ...buttons);
    // If the person closes the notification, the question stays in the status bar.
    if (chosen === undefined) return;
    if (!this.#app.questions.isOpen(eventId)) {
      void vscode.window.showInformationMessage('The question is over already.');
    } else if (chosen === 'Answer…') await this.#prompt(question);
    else this.#app.questions.answer(eventId, chosen === 'Dismiss' ? undefined : chosen === 'Yes');
  }

  async #prompt(question: Question): Promise<void> {
    const { kind, eventId, initial } = question.asked;
    const stop = this.#app.questions.keepOpen(eventId);
    if (kind === 'editor') {
      await this.#composer.answer(initial ?? '', async (text) => {
        stop();
        if (!this.#app.questions.answer(eventId, text)) {
          if (text !== undefined) throw new Error('The question is over; nothing was sent.');
        }
      });
      return;
    }
    try {
      const value = await this.#read(question);
      // If the person leaves the prompt without an answer, the question stays in the status bar.
      if (value === undefined) return;
      if (!this.#app.questions.answer(eventId, value)) {
        void vscode.window.showInformationMessage('The question is over already.');
      }
    } finally {
      stop();
    }
  }

  /** Reads the answer. The prompt closes when the question is over. */
  async #read({ asked, signal }: Question): Promise<string | boolean | undefined> {
    const { kind, title, message, options = [], placeholder, initial, by } = asked;
    const cancel = new vscode.CancellationTokenSource();
    signal.addEventListener('abort', () => cancel.cancel(), { once: true });
    const shared = {
      title: `${by}: ${title}`,
      ignoreFocusOut: true,
      ...(placeholder && { placeHolder: placeholder }),
    };
    if (kind === 'input') {
      return vscode.window.showInputBox(
        { ...shared, prompt: message ?? '', value: initial ?? '' },
        cancel.token,
      );
    }
    const choices = kind === 'confirm' ? ['Yes', 'No'] : [...options];
    // The suggested choice comes first, since the cursor is there.
    if (initial && choices.includes(initial))
      choices.sort((a, b) => Number(b === initial) - Number(a === initial));
    const hint = message === undefined ? {} : { placeHolder: message };
    const chosen = await vscode.window.showQuickPick(choices, { ...shared, ...hint }, cancel.token);
    return kind === 'confirm' && chosen !== undefined ? chosen === 'Yes' : chosen;
  }

  #say(level: string, text: string): void {
    const show =
      level === 'error'
        ? vscode.window.showErrorMessage
        : level === 'warning'
          ? vscode.window.showWarningMessage
          : vscode.window.showInformationMessage;
    void show(text);
  }
}
