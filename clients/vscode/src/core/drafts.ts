// Messages that are being written. A draft survives the end of the daemon or the window and a failed send. It is
// deleted only after the daemon has stored its text.

import { randomUUID } from 'node:crypto';
import { type ContentBlock, TreelinedError } from 'treelined';
import type { Session } from './session.js';

export interface Draft {
  sessionId: string;
  /** The id of the entry for this message. With this id, sending the same text twice appends one message. */
  entryId: string;
  /** The images of the message before which the leaf has moved. */
  images: ContentBlock[];
  /** The text of the last send that got no answer. */
  sent?: string;
}

/** Stores drafts beyond the life of the window. */
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

  /** The draft of the document `key`. */
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
   * Appends the draft with `text` at the leaf that the person sees. If this fails, the draft is kept. After a lost
   * answer, the same text is sent with the same id, so that it is appended only once.
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

  /**
   * Called if the text has changed after a send without an answer. If the earlier text was stored, the draft becomes
   * another message with a new id.
   */
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
