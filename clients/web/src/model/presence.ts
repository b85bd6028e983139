/** Asks the daemon repeatedly which other machines have the current session open. */

import { hostsOf } from './session-list.ts';
import type { SessionRow } from '../wire.ts';

/** The pause between two requests, in milliseconds. */
const PAUSE = 20_000;

interface Answer {
  sessions: SessionRow[];
  /** Set only if the daemon is connected to the stream of a team. */
  teamCount?: number;
}

export class Presence {
  hosts: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private generation = 0;

  constructor(
    private readonly call: (method: string, params: object) => Promise<Answer>,
    private readonly changed: () => void,
  ) {}

  /** Asks about this session from now on, and no longer about the previous one. */
  watch(sessionId: string): void {
    this.stop();
    this.ask(sessionId, this.generation);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.hosts = [];
    this.generation++;
  }

  private ask(sessionId: string, generation: number): void {
    this.call('list_sessions', { query: sessionId })
      .then(({ sessions, teamCount }) => {
        if (generation !== this.generation || teamCount === undefined) return;
        const row = sessions.find((one) => one.sessionId === sessionId);
        const hosts = hostsOf(row?.log?.openOn);
        const isNew = hosts.join('\n') !== this.hosts.join('\n');
        this.hosts = hosts;
        if (isNew) this.changed();
        this.timer = setTimeout(() => this.ask(sessionId, generation), PAUSE);
      })
      // After a failed request it asks again only when a session is opened.
      .catch(() => undefined);
  }
}
