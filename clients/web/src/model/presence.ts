/** The other machines that have the open session open, asked for from time to time. */

import { hostsOf, type SessionRow } from './session-list.ts';

const PAUSE = 20_000;

interface Answer {
  sessions: SessionRow[];
  /** Only from a daemon with a log. */
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

  /** Asks about this session in place of the one before. */
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
      // The next opening asks again.
      .catch(() => undefined);
  }
}
