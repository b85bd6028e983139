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

/** The tools from which sessions are imported. */
export const SOURCES: readonly { tool: string; name: string }[] = [
  ...AGENTS.filter(({ tool }) => tool !== 'text'),
  { tool: 'qwen-code', name: 'Qwen Code' },
  { tool: 'cline', name: 'Cline' },
  { tool: 'roo-code', name: 'Roo Code' },
  { tool: 'kilo-code', name: 'Kilo Code' },
  { tool: 'copilot-cli', name: 'Copilot CLI' },
  { tool: 'vscode-chat', name: 'VS Code Copilot Chat' },
  { tool: 'chatgpt', name: 'ChatGPT' },
  { tool: 'claude-ai', name: 'Claude.ai' },
];

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
  return SOURCES.find(({ tool }) => tool === source)?.name ?? source ?? 'treelined';
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

/** A line that can be selected: a session, or an entry that a search has found. */
export interface ListLine {
  /** Names the line also after other lines have come and gone. */
  key: string;
  sessionId: string;
  hit?: { entryId: string };
  /** Says why the session cannot be opened. */
  damage?: string;
}

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
  /** The key of the line that the reader has selected; undefined as long as it is the first one. */
  private chosen: string | undefined;
  /** Where the chosen line was. */
  private chosenAt = 0;
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
    this.selectFirst();
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
    this.selectFirst();
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

  /** All lines, from the top. */
  get lines(): ListLine[] {
    const sessions = (this.rows ?? []).map(({ sessionId, diagnostic }) => ({
      ...{ key: sessionId, sessionId },
      ...(diagnostic && { damage: diagnostic.message }),
    }));
    const team = this.team.map(({ sessionId }) => ({ key: `team/${sessionId}`, sessionId }));
    const hits = this.text.hits.map(({ sessionId, entryId }, at) => ({
      ...{ key: `hit/${at}/${sessionId}/${entryId}`, sessionId },
      hit: { entryId },
    }));
    return [...sessions, ...team, ...hits];
  }

  /** The index of the selected line. It stays on its session while other sessions move to the top of the list. */
  get selected(): number {
    return this.indexIn(this.lines);
  }

  private indexIn(lines: ListLine[]): number {
    if (this.chosen === undefined) return 0;
    const at = lines.findIndex(({ key }) => key === this.chosen);
    return at < 0 ? Math.max(0, Math.min(lines.length - 1, this.chosenAt)) : at;
  }

  private selectFirst(): void {
    this.chosen = undefined;
  }

  move(by: number): void {
    const { lines } = this;
    this.chosenAt = Math.max(0, Math.min(lines.length - 1, this.indexIn(lines) + by));
    this.chosen = lines[this.chosenAt]?.key;
    this.live.app.changed();
    setTimeout(() =>
      document.querySelector('.sessions .selected')?.scrollIntoView({ block: 'nearest' }),
    );
  }

  accept(line = this.lines[this.selected]): void {
    if (line === undefined) return;
    const { sessionId, hit, damage } = line;
    if (damage !== undefined) {
      this.live.app.say(damage, 'warning');
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
