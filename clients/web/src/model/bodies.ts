/** The bodies of entries that are or were on the screen. */

import type { Rendered, Source } from '../source/source.ts';

/** The number of bodies that are kept. */
const KEPT = 600;

/** The most bodies in one request. */
const BATCH = 40;

/** After a failed request, the pause before the same bodies are requested again, in milliseconds. */
const RETRY = 3000;

export class Bodies {
  private readonly bodies = new Map<string, Rendered | 'asked'>();
  private wanted: string[] = [];
  private running = false;
  /** Increases with each body that arrives, so that measurements from before it can be recognized. */
  version = 0;

  constructor(
    private readonly source: Source,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** The body of an entry; undefined until it is read. */
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

  /** Drops the bodies, which may have changed. */
  clear(): void {
    this.bodies.clear();
  }

  /** Drops bodies that have a call without a result, since the result may have arrived. */
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
      // The bodies that were requested last are on the screen.
      const ids = this.wanted.splice(-BATCH);
      try {
        for (const body of await this.source.render(ids)) this.bodies.set(body.entryId, body);
        for (const id of ids) {
          if (this.bodies.get(id) === 'asked') {
            this.bodies.set(id, { entryId: id, type: '', blocks: [] });
          }
        }
      } catch (error) {
        // The request is repeated only after a pause, since it might fail without end.
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
