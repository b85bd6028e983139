/** The bodies of entries that are on the screen or were. */

import type { Rendered, Source } from '../source/source.ts';

/** How many bodies are kept. */
const KEPT = 600;

/** How many bodies are asked for at a time. */
const BATCH = 40;

/** How long not to ask again for bodies that could not be read, in milliseconds. */
const RETRY = 3000;

export class Bodies {
  private readonly bodies = new Map<string, Rendered | 'asked'>();
  private wanted: string[] = [];
  private running = false;
  /** How often a body arrived, to tell measurements apart. */
  version = 0;

  constructor(
    private readonly source: Source,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** The body, or undefined while it is read. */
  get(id: string): Rendered | undefined {
    const body = this.bodies.get(id);
    if (body === undefined) {
      this.bodies.set(id, 'asked');
      this.wanted.push(id);
      if (!this.running) {
        this.running = true;
        queueMicrotask(() => void this.read());
      }
    }
    return body === 'asked' ? undefined : body;
  }

  /** Forgets what may have changed. */
  clear(): void {
    this.bodies.clear();
  }

  /** Forgets bodies with calls that had no result: it may have come. */
  forgetOpenCalls(): void {
    for (const [id, body] of this.bodies) {
      if (body === 'asked') continue;
      if (body.blocks.some((block) => block.kind === 'toolCall' && !block.result)) {
        this.bodies.delete(id);
      }
    }
  }

  async fetch(id: string): Promise<Rendered | undefined> {
    const body = this.bodies.get(id);
    if (body !== undefined && body !== 'asked') return body;
    return (await this.source.render([id]))[0];
  }

  private async read(): Promise<void> {
    while (this.wanted.length > 0) {
      // The last ones asked for are on the screen.
      const ids = this.wanted.splice(-BATCH);
      try {
        for (const body of await this.source.render(ids)) this.bodies.set(body.entryId, body);
        for (const id of ids) {
          if (this.bodies.get(id) === 'asked') {
            this.bodies.set(id, { entryId: id, type: '', blocks: [] });
          }
        }
      } catch (error) {
        // Asked for again after a while: at once would be asking without end.
        setTimeout(() => {
          for (const id of ids) if (this.bodies.get(id) === 'asked') this.bodies.delete(id);
          this.changed();
        }, RETRY);
        this.failed(error);
        continue;
      }
      for (const oldest of this.bodies.keys()) {
        if (this.bodies.size <= KEPT) break;
        this.bodies.delete(oldest);
      }
      this.version++;
      this.changed();
    }
    this.running = false;
  }
}
