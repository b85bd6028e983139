// The list of sessions, grouped by working directory.

import { basename } from 'node:path';
import type { SessionRow } from 'treelined';
import type { Connection } from './connection.js';
import { Emitter, throttle } from './emitter.js';
import { ago, count, shorten } from './text.js';

/** The number of rows in one request. */
const PAGE = 100;

/** The shortest time between two readings of the list, in milliseconds. */
const CHANGE_MS = 500;

export class SessionList {
  readonly #connection: Connection;
  /** Words that must occur in the name, first message, directory or id. */
  query = '';
  /** Whether archived sessions are listed too. */
  archived = false;
  /** Fires when the list has changed. */
  readonly changed = new Emitter<undefined>();
  readonly #stops: (() => void)[];

  constructor(connection: Connection) {
    this.#connection = connection;
    const change = throttle(CHANGE_MS, () => this.changed.fire(undefined));
    this.#stops = [
      connection.notified.on(({ name }) => {
        if (name === 'sessions_changed') change();
      }),
      connection.started.on((client) => {
        // An older daemon does not have this method. Then the list is read again only on demand.
        client.watchSessions({ archived: this.archived }).catch(() => {});
        change();
      }),
      change.stop,
    ];
  }

  /** Returns sessions, the last active first: of one directory, or of all directories but those in `except`. */
  async rows(
    of: { cwd: string } | { except: readonly string[] },
    limit = PAGE,
  ): Promise<SessionRow[]> {
    const query = this.query.trim();
    const { except } = 'cwd' in of ? { except: [] } : of;
    const rows: SessionRow[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#connection.call('list_sessions', {
        limit: limit - rows.length,
        ...('cwd' in of && { cwd: of.cwd }),
        ...(query && { query }),
        ...(this.archived && { archived: true }),
        ...(cursor && { cursor }),
      });
      rows.push(...page.sessions.filter(({ cwd }) => !except.includes(cwd)));
      cursor = page.nextCursor;
    } while (cursor !== undefined && rows.length < limit);
    return rows;
  }

  /** Shows or hides archived sessions in the list. */
  async showArchived(archived: boolean): Promise<void> {
    this.archived = archived;
    await this.#connection.call('watch_sessions', { archived });
  }

  dispose(): void {
    for (const stop of this.#stops) stop();
  }
}

/** The name of a session, or its first message, or its directory. */
export function sessionTitle(
  row: Pick<SessionRow, 'sessionId' | 'name' | 'firstMessage' | 'cwd'>,
): string {
  const title = row.name ?? shorten(row.firstMessage, 80);
  return title || `${basename(row.cwd) || 'session'} ${row.sessionId.slice(-8)}`;
}

/** The age and the size of a session, the tool that it was imported from, its tags, marks and git branch. */
export function sessionFacts(
  row: Pick<
    SessionRow,
    'modified' | 'messageCount' | 'source' | 'tags' | 'pinned' | 'archived' | 'git'
  >,
): string {
  const facts = [
    ago(row.modified),
    count(row.messageCount, 'message'),
    row.source,
    row.git?.branch && `on ${row.git.branch}`,
    ...(row.tags ?? []).map((tag) => `#${tag}`),
    row.pinned && 'pinned',
    row.archived && 'archived',
  ];
  return facts.filter(Boolean).join(' · ');
}
