// Questions of other programs to the person at this window. A question waits in a list until the person opens it, so
// that keys typed elsewhere do not answer it.

import type { EventAnswer, UserAsked } from 'treelined';
import { Emitter } from './emitter.js';

/** An open prompt extends its question by this time, in milliseconds, repeatedly. */
const EXTENSION_MS = 120_000;

export interface Question {
  asked: UserAsked;
  /** Aborts when the question is over: another client has answered, it was withdrawn, or the time is up. */
  signal: AbortSignal;
}

interface Open extends Question {
  answer: (answer: EventAnswer | undefined) => void;
  extend: (ms: number) => Promise<number>;
}

export class Questions {
  readonly #open = new Map<string, Open>();
  /** Fires when the list has changed. The event is the new question, if there is one. */
  readonly changed = new Emitter<Question | undefined>();

  /** The open questions, the oldest first. */
  get all(): Question[] {
    return [...this.#open.values()];
  }

  /** Waits for the person's answer. Undefined dismisses the question. */
  ask(
    asked: UserAsked,
    signal: AbortSignal,
    extend: (ms: number) => Promise<number>,
  ): Promise<EventAnswer | undefined> {
    return new Promise((resolve) => {
      const end = (answer: EventAnswer | undefined) => {
        if (!this.#open.delete(asked.eventId)) return;
        resolve(answer);
        this.changed.fire(undefined);
      };
      signal.addEventListener('abort', () => end(undefined), { once: true });
      const question = { asked, signal, extend, answer: end };
      this.#open.set(asked.eventId, question);
      this.changed.fire(question);
    });
  }

  isOpen(eventId: string): boolean {
    return this.#open.has(eventId);
  }

  /** Answers with a text or a choice. Undefined dismisses the question. Returns false if the question is over. */
  answer(eventId: string, value: string | boolean | undefined): boolean {
    const question = this.#open.get(eventId);
    question?.answer(value === undefined ? undefined : { value });
    return question !== undefined;
  }

  /** Keeps a question open while its prompt is shown. Returns a function that stops this. */
  keepOpen(eventId: string): () => void {
    const more = () => {
      void this.#open
        .get(eventId)
        ?.extend(EXTENSION_MS)
        .catch(() => {});
    };
    more();
    const timer = setInterval(more, EXTENSION_MS / 2);
    return () => clearInterval(timer);
  }
}
