/** The list of sessions, and the search in the text of all of them. */

import type { Live } from './live.ts';
import { parseQuery, wireQuery } from '../text/query.ts';

export interface SessionRow {
  sessionId: string;
  cwd: string;
  name?: string;
  modified: string;
  messageCount: number;
  firstMessage: string;
  diagnostic?: { kind: string; message: string };
  log?: { openOn: OpenOn[] };
}

/** Another machine that has a session open. */
export interface OpenOn {
  host: string;
}

/** A session of the log that has no file on this machine. */
export interface TeamRow {
  sessionId: string;
  cwd?: string;
  name?: string;
  modified?: string;
  entries?: number;
  host?: string;
  openOn: OpenOn[];
}

interface ListPage {
  sessions: SessionRow[];
  nextCursor?: string;
  team?: TeamRow[];
}

/** The names of machines, each once. */
export function hostsOf(openOn: OpenOn[] | undefined): string[] {
  return [...new Set(openOn?.map(({ host }) => host))];
}

export interface Hit {
  sessionId: string;
  sessionName: string;
  entryId: string;
  field: string;
  at: string;
  snippet: string;
  ranges: [number, number][];
  branch: { onActivePath: boolean };
}

const PAGE = 100;
const HITS = 200;

export class SessionList {
  rows: SessionRow[] | undefined;
  /** The sessions of other machines. */
  team: TeamRow[] = [];
  hits: Hit[] = [];
  typed = '';
  /** Whether the search in the text is still running. */
  searching = false;
  hasMore = false;
  selected = 0;
  private cursor: string | undefined;
  private watching = false;
  private generation = 0;
  private token: number | undefined;
  private abort: AbortController | undefined;
  private reading: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly live: Live) {}

  async load(): Promise<void> {
    const generation = ++this.generation;
    await this.read(undefined, generation);
    if (this.watching) return;
    this.watching = true;
    await this.live.call('watch_sessions');
  }

  /** A new connection watches nothing yet. */
  forget(): void {
    this.watching = false;
  }

  private async read(cursor: string | undefined, generation: number): Promise<void> {
    const query = this.typed.trim();
    const page = await this.live.call<ListPage>('list_sessions', {
      limit: PAGE,
      ...(query === '' || /^["/]/.test(query) ? {} : { query }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    if (generation !== this.generation) return;
    if (cursor === undefined) this.team = page.team ?? [];
    this.rows = cursor === undefined ? page.sessions : [...(this.rows ?? []), ...page.sessions];
    this.cursor = page.nextCursor;
    this.hasMore = page.nextCursor !== undefined;
    this.live.app.changed();
  }

  more(): void {
    this.read(this.cursor, this.generation).catch(this.live.app.failed);
  }

  changed(): void {
    if (!this.live.listing || this.reading !== undefined) return;
    this.reading = setTimeout(() => {
      this.reading = undefined;
      this.load().catch(this.live.app.failed);
    }, 300);
  }

  search(text: string): void {
    this.typed = text;
    this.selected = 0;
    this.load().catch(this.live.app.failed);
    this.abort?.abort();
    this.hits = [];
    const query = parseQuery(text);
    this.searching = query !== undefined && !query.error && query.text.length > 1;
    if (!query || !this.searching) return this.live.app.changed();
    const abort = new AbortController();
    this.abort = abort;
    const params = { ...wireQuery(query), limit: HITS };
    setTimeout(() => {
      if (abort.signal.aborted) return;
      const token = (id: number): void => {
        this.token = id;
      };
      this.live.link
        ?.call<{ hits: Hit[] }>('search', params, { signal: abort.signal, token })
        .then(({ hits }) => {
          if (abort.signal.aborted) return;
          // With the capability `searchHits` hits have come one by one.
          if (hits.length > 0) this.hits = hits;
          this.searching = false;
          this.live.app.changed();
        })
        .catch((error: unknown) => {
          if (abort.signal.aborted) return;
          this.searching = false;
          this.live.app.failed(error);
        });
    }, 150);
    this.live.app.changed();
  }

  hit(params: Record<string, unknown>): void {
    if (params.token !== this.token || this.abort?.signal.aborted) return;
    this.hits.push(params.hit as Hit);
    this.live.app.changed();
  }

  get count(): number {
    return (this.rows?.length ?? 0) + this.team.length + this.hits.length;
  }

  move(by: number): void {
    this.selected = Math.max(0, Math.min(this.count - 1, this.selected + by));
    this.live.app.changed();
    setTimeout(() =>
      document.querySelector('.sessions .selected')?.scrollIntoView({ block: 'nearest' }),
    );
  }

  accept(at = this.selected): void {
    const rows = this.rows ?? [];
    const row = rows[at];
    const other = this.team[at - rows.length];
    const hit = this.hits[at - rows.length - this.team.length];
    const sessionId = (row ?? other ?? hit)?.sessionId;
    if (sessionId === undefined) return;
    if (row?.diagnostic) {
      this.live.app.say(row.diagnostic.message, 'warning');
      return;
    }
    const open = async (): Promise<void> => {
      history.replaceState(null, '', location.pathname);
      await this.live.openSession({ session: sessionId }, hit?.entryId);
      if (hit) {
        await this.live.app.go(hit.entryId);
        this.live.app.search(this.typed);
      }
    };
    open().catch(this.live.app.failed);
  }
}
