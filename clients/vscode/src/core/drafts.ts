// Messages that are being written. A draft survives the daemon, the window and a failed sending: it is forgotten
// only when the daemon has its text.

import { randomUUID } from 'node:crypto';
import { type ContentBlock, TreelinedError } from 'treelined';
import type { Session } from './session.js';

export interface Draft {
  sessionId: string;
  /** The entry that the message becomes. Sending the same text twice appends one message. */
  entryId: string;
  /** Images of the message that was gone back to. */
  images: ContentBlock[];
  /** The text that was sent last, if no answer has come. */
  sent?: string;
}

/** Keeps drafts beyond the window. */
export interface Memory {
  load(): Record<string, Draft> | undefined;
  save(drafts: Record<string, Draft>): void;
}

export class Drafts {
  readonly #memory: Memory;
  readonly #drafts: Map<string, Draft>;

  constructor(memory: Memory) {
    this.#memory = memory;
    this.#drafts = new Map(Object.entries(memory.load() ?? {}));
  }

  /** The draft in the document `key`. */
  get(key: string): Draft | undefined {
    return this.#drafts.get(key);
  }

  begin(key: string, sessionId: string, images: ContentBlock[] = []): void {
    this.#put(key, { sessionId, images, entryId: randomUUID() });
  }

  forget(key: string): void {
    this.#drafts.delete(key);
    this.#save();
  }

  /**
   * Appends the draft with `text` at the leaf that the person sees. Fails without forgetting anything. After an
   * answer that was lost, the same text is sent with the same id, so that it is there once.
   */
  async send(key: string, text: string, session: Session): Promise<string> {
    const draft = this.#drafts.get(key);
    if (draft === undefined) throw new Error('this document is not a draft');
    if (text.trim() === '') throw new Error('the message is empty');
    if (draft.sent !== undefined && draft.sent !== text) await this.#edited(draft, session);
    draft.sent = text;
    this.#put(key, draft);
    const content = [{ type: 'text' as const, text }, ...draft.images];
    const params = { entryId: draft.entryId, message: { role: 'user' as const, content } };
    const { entryId } = await session.call('append_message', {
      ...params,
      expectedLeafId: session.leafId,
    });
    this.forget(key);
    return entryId;
  }

  /** The text has changed since a sending without an answer: if that one has arrived, this is another message. */
  async #edited(draft: Draft, session: Session): Promise<void> {
    try {
      await session.call('get_entry', { entryId: draft.entryId });
      draft.entryId = randomUUID();
    } catch (error) {
      if (!(error instanceof TreelinedError && error.is('entryNotFound'))) throw error;
    }
  }

  #put(key: string, draft: Draft): void {
    this.#drafts.set(key, draft);
    this.#save();
  }

  #save(): void {
    this.#memory.save(Object.fromEntries(this.#drafts));
  }
}
