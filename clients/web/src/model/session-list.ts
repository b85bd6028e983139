/** The list of sessions, and the search over the text of all sessions. */

import type { LiveState } from './live-state.ts';
import type { OpenOn, SessionRow, TeamRow } from '../wire.ts';
import { AGENTS } from './handoff.ts';
import { TextSearch } from './text-search.ts';

interface ListPage {
  sessions: SessionRow[];
  nextCursor?: string;
  team?: TeamRow[];
}

/** The names of the machines, without duplicates. */
export function hostsOf(openOn: OpenOn[] | undefined): string[] {
  return [...new Set(openOn?.map(({ host }) => host))];
}

/** The property that the sessions of a group share. */
export type Grouping = 'none' | 'project' | 'tool' | 'date';

/** The periods for filters and groups, in days. The last one includes all sessions. */
export const PERIODS = [
  { days: 1, about: 'Last 24 hours' },
  { days: 7, about: 'Last 7 days' },
  { days: 30, about: 'Last 30 days' },
  { days: Infinity, about: 'Older' },
] as const;

const DAY = 86_400_000;

/** Which sessions are shown, and how they are grouped. */
export interface ListFilter {
  /** The tool from which sessions were imported; empty for all. */
  tool: string;
  /** The working directory of the sessions; empty for all. */
  project: string;
  /** The greatest age of the last message, in days. */
  days: number;
  grouping: Grouping;
  /** Whether archived sessions are shown too. */
  archived: boolean;
}

function isWithin(row: SessionRow, days: number, now: number): boolean {
  return !(now - Date.parse(row.modified) > days * DAY);
}

/** The group to which a session belongs. */
function groupOf(row: SessionRow, by: Grouping, now: number): string {
  if (by === 'none') return '';
  if (by === 'project') return row.cwd || 'No directory';
  if (by === 'date') return PERIODS.find(({ days }) => isWithin(row, days, now))?.about ?? '';
  const { source } = row;
  return AGENTS.find(({ tool }) => tool === source)?.name ?? source ?? 'treelined';
}

/** The sessions of each group. Groups have the order of their first sessions; by date, the newest group is first. */
export function groups(
  rows: readonly SessionRow[],
  { days, grouping }: ListFilter,
  now: number,
): Map<string, SessionRow[]> {
  const found = new Map<string, SessionRow[]>();
  if (grouping === 'date') for (const { about } of PERIODS) found.set(about, []);
  for (const row of rows.filter((each) => isWithin(each, days, now))) {
    const name = groupOf(row, grouping, now);
    const group = found.get(name);
    if (group) group.push(row);
    else found.set(name, [row]);
  }
  for (const [name, group] of found) if (group.length === 0) found.delete(name);
  return found;
}

const PAGE = 100;

export class SessionList {
  /** The sessions that were read. */
  private loaded: SessionRow[] | undefined;
  filter: ListFilter = { tool: '', project: '', days: Infinity, grouping: 'none', archived: false };
  /** The working directories of all sessions that were read so far. */
  readonly projects = new Set<string>();
  /** The sessions that are only on other machines of the team. */
  team: TeamRow[] = [];
  typed = '';
  readonly text: TextSearch;
  hasMore = false;
  selected = 0;
  private cursor: string | undefined;
  private watching = false;
  private generation = 0;
  private reading: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly live: LiveState) {
    this.text = new TextSearch(live);
  }

  /** The shown sessions in their groups. */
  get groups(): Map<string, SessionRow[]> {
    return groups(this.loaded ?? [], this.filter, Date.now());
  }

  /** The shown sessions without groups; undefined until they are read. */
  get rows(): SessionRow[] | undefined {
    return this.loaded && [...this.groups.values()].flat();
  }

  setFilter(change: Partial<ListFilter>): void {
    this.filter = { ...this.filter, ...change };
    this.selected = 0;
    const { tool, project, archived } = change;
    if ((tool ?? project ?? archived) === undefined) this.live.app.changed();
    else this.load().catch(this.live.app.failed);
  }

  async load(): Promise<void> {
    const generation = ++this.generation;
    await this.read(undefined, generation);
    if (this.watching) return;
    this.watching = true;
    // Archived sessions are watched too. After each change the list is read again.
    await this.live.call('watch_sessions', { archived: true });
  }

  /** Called for a new connection, which does not watch the sessions yet. */
  forget(): void {
    this.watching = false;
  }

  private async read(cursor: string | undefined, generation: number): Promise<void> {
    const query = this.typed.trim();
    const page = await this.live.call<ListPage>('list_sessions', {
      limit: PAGE,
      ...(query === '' || /^["/]/.test(query) ? {} : { query }),
      ...(this.filter.tool === '' ? {} : { source: this.filter.tool }),
      ...(this.filter.project === '' ? {} : { cwd: this.filter.project }),
      ...(this.filter.archived ? { archived: true } : {}),
      ...(cursor === undefined ? {} : { cursor }),
    });
    if (generation !== this.generation) return;
    if (cursor === undefined) this.team = page.team ?? [];
    this.loaded = cursor === undefined ? page.sessions : [...(this.loaded ?? []), ...page.sessions];
    for (const { cwd } of page.sessions) if (cwd !== '') this.projects.add(cwd);
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

  search(text: string, cursor?: number): void {
    this.typed = text;
    this.selected = 0;
    this.load().catch(this.live.app.failed);
    this.text.search(text, cursor);
  }

  /** Whether a filter leaves sessions out. */
  get isFiltered(): boolean {
    const { tool, project, days } = this.filter;
    return tool !== '' || project !== '' || days !== Infinity;
  }

  get count(): number {
    return (this.rows?.length ?? 0) + this.team.length + this.text.hits.length;
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
    const hit = this.text.hits[at - rows.length - this.team.length];
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
        // The search in a tree knows words and patterns, but not questions.
        if (this.text.mode === 'words' && !/\S:/u.test(this.typed))
          this.live.app.session?.tree.search(this.typed);
      }
    };
    open().catch(this.live.app.failed);
  }
}
