/** Exporting a session with a review of its secrets (protocol.md §16): what is replaced, what stays, and who decides. */

import type { LiveState } from './live-state.ts';
import { RpcError } from '../source/rpc.ts';

/** The formats, with the endings of their files. A session file without secrets has one branch. */
export const FORMATS = [
  { format: 'html', ending: 'html', name: 'a page' },
  { format: 'markdown', ending: 'md', name: 'a document in Markdown' },
  { format: 'text', ending: 'txt', name: 'plain text' },
  { format: 'trace', ending: 'jsonl', name: 'a session file of this branch, without secrets' },
] as const;

export interface ReviewedSecret {
  id: string;
  kind: string;
  replaced: boolean;
  shown: string;
  length: number;
  count: number;
  entryIds: string[];
}

const HINTS = new Map([
  [
    'responseTooLarge',
    'Run `treelined export --review` in a terminal: it writes a file of any size.',
  ],
  ['invalidParams', 'Correct what the message names.'],
]);

export class Export {
  format: string = FORMATS[0].format;
  /** Words that are replaced too. */
  words: readonly string[] = [];
  /** What is replaced, and then what looks like a secret and stays; undefined until the review is there. */
  secrets: readonly ReviewedSecret[] | undefined;
  failure: { message: string; hint: string } | undefined;
  isWriting = false;
  /** The decisions of the person, by the id of the secret. */
  private readonly decided = new Map<string, boolean>();
  private asked = 0;

  constructor(private readonly live: LiveState) {
    this.review();
  }

  choose(change: Partial<Pick<Export, 'format' | 'words'>>): void {
    Object.assign(this, change);
    this.review();
  }

  isReplaced(secret: ReviewedSecret): boolean {
    return this.decided.get(secret.id) ?? secret.replaced;
  }

  decide(secret: ReviewedSecret, replaces: boolean): void {
    this.decided.set(secret.id, replaces);
    this.live.app.changed();
  }

  /** Asks what an export would replace. It writes nothing. */
  private review(): void {
    const asked = ++this.asked;
    this.secrets = undefined;
    this.failure = undefined;
    this.live.app.changed();
    this.call<{ review: ReviewedSecret[] }>({ review: true })
      .then(({ review }) => {
        if (asked !== this.asked) return;
        this.secrets = review;
        this.live.app.changed();
      })
      .catch((error: unknown) => {
        if (asked === this.asked) this.failed(error);
      });
  }

  /** The text of the file with the decisions, and its name; undefined if it failed. */
  async write(): Promise<{ name: string; content: string } | undefined> {
    const { secrets } = this;
    if (!secrets || this.isWriting) return undefined;
    this.isWriting = true;
    this.failure = undefined;
    this.live.app.changed();
    const differs = (to: boolean): string[] =>
      secrets
        .filter((secret) => secret.replaced !== to && this.isReplaced(secret) === to)
        .map((secret) => secret.id);
    try {
      const { content } = await this.call<{ content: string }>({
        keep: differs(false),
        replace: differs(true),
      });
      return { name: this.fileName(), content };
    } catch (error) {
      this.failed(error);
      return undefined;
    } finally {
      this.isWriting = false;
      this.live.app.changed();
    }
  }

  private call<T>(params: object): Promise<T> {
    const { format, words } = this;
    const { sessionId } = this.live;
    return this.live.call<T>('export_session', { sessionId, format, words, ...params });
  }

  private failed(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const kind = error instanceof RpcError ? error.kind : '';
    this.failure = { message, hint: HINTS.get(kind) ?? 'Nothing was written.' };
    this.live.app.changed();
  }

  private fileName(): string {
    const title = this.live.source?.session.title ?? '';
    const plain = title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '');
    const ending = FORMATS.find(({ format }) => format === this.format)?.ending ?? 'txt';
    return `${Array.from(plain).slice(0, 60).join('') || 'session'}.${ending}`;
  }
}
