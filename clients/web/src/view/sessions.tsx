/** The sessions of the daemon, and the hits of a search over the text of all sessions. */

import type { ComponentChildren } from 'preact';
import type { App } from '../model/app.ts';
import type { Live } from '../model/live.ts';
import {
  hostsOf,
  PERIODS,
  SOURCES,
  type Grouping,
  type ListLine,
  type SessionList,
} from '../model/session-list.ts';
import type { SessionRow, TeamRow } from '../wire.ts';
import { age } from '../text/time.ts';
import { plural, visible } from '../text/visible.ts';
import { IconButton } from './icons.tsx';
import { HitLine, MoreHits, NearWords, SearchField } from './search.tsx';

function onKey(app: App, live: Live, event: KeyboardEvent): boolean {
  const { list } = live;
  // A filter has its own keys.
  if (event.target instanceof Element && event.target.closest('select')) return false;
  if (event.key === 'ArrowDown') list.move(1);
  else if (event.key === 'ArrowUp') list.move(-1);
  else if (event.key === 'PageDown') list.move(10);
  else if (event.key === 'PageUp') list.move(-10);
  else if (event.key === 'Enter') list.accept();
  else if (event.key === 'Escape') {
    if (list.text.within) list.text.searchWithin(undefined);
    else if (list.typed !== '') list.search('');
    else if (app.session) live.hideList();
  } else return false;
  return true;
}

export function Sessions({ app, live }: { app: App; live: Live }) {
  const { list } = live;
  const { text } = list;
  const { lines, selected } = list;
  const elsewhere = list.rows?.length ?? 0;
  let at = 0;
  const line = (at: number) => ({ live, line: lines[at], selected: at === selected });
  const keys = (event: KeyboardEvent): void => {
    if (onKey(app, live, event)) event.preventDefault();
  };
  return (
    <main class="sessions" onKeyDown={keys}>
      <header>
        <h1>Sessions</h1>
        {app.session && (
          <IconButton
            icon="close"
            name="Back to the session"
            hint="esc"
            run={() => live.hideList()}
          />
        )}
      </header>
      <SearchField list={list} />
      <Filters list={list} />
      {list.rows === undefined ? (
        <p class="waiting">{live.link?.state === 'open' ? 'Reading…' : ''}</p>
      ) : list.count === 0 && !list.text.running && !list.text.fault ? (
        <p class="empty">
          {list.typed === '' && !list.isFiltered
            ? 'There are no sessions yet.'
            : 'Nothing was found.'}
        </p>
      ) : null}
      {[...list.groups].map(([name, group]) => (
        <section key={name}>
          {name !== '' && <h2 dir="auto">{visible(name)}</h2>}
          <ul aria-label={name === '' ? 'Sessions' : visible(name)}>
            {group.map((row) => (
              <Line {...line(at++)} key={row.sessionId} below={<PutAway live={live} row={row} />}>
                <SessionLine row={row} />
              </Line>
            ))}
          </ul>
        </section>
      ))}
      {list.hasMore && (
        <button type="button" class="more" onClick={() => list.more()}>
          Show more sessions
        </button>
      )}
      {list.team.length > 0 && (
        <>
          <h2>On other machines</h2>
          <ul aria-label="Sessions of other machines">
            {list.team.map((row, at) => (
              <Line {...line(elsewhere + at)} key={row.sessionId}>
                <TeamLine row={row} />
              </Line>
            ))}
          </ul>
        </>
      )}
      <NearWords list={list} />
      {(text.hits.length > 0 || text.running) && (
        <h2>
          {text.running && text.hits.length === 0
            ? 'Searching the text…'
            : `${plural(text.hits.length, 'entry', 'entries')} ${text.mode === 'ask' ? 'about this' : 'with this text'}`}
        </h2>
      )}
      <ul aria-label="Entries">
        {text.hits.map((hit, at) => (
          <Line
            {...line(elsewhere + list.team.length + at)}
            key={`${hit.sessionId}/${hit.entryId}/${at}`}
            below={<MoreHits search={text} at={at} />}
          >
            <HitLine hit={hit} />
          </Line>
        ))}
      </ul>
    </main>
  );
}

const GROUPINGS: Record<Grouping, string> = {
  none: 'No groups',
  project: 'By project',
  tool: 'By tool',
  date: 'By date',
};

function Filters({ list }: { list: SessionList }) {
  const { filter } = list;
  return (
    <div class="list-filters">
      <select
        aria-label="Tool"
        value={filter.tool}
        onChange={(event) => list.setFilter({ tool: event.currentTarget.value })}
      >
        <option value="">All tools</option>
        {SOURCES.map(({ tool, name }) => (
          <option value={tool}>{name}</option>
        ))}
      </select>
      <select
        aria-label="Project"
        value={filter.project}
        onChange={(event) => list.setFilter({ project: event.currentTarget.value })}
      >
        <option value="">All projects</option>
        {[...list.projects].sort().map((project) => (
          <option value={project}>{visible(project)}</option>
        ))}
      </select>
      <select
        aria-label="Date"
        value={String(filter.days)}
        onChange={(event) => list.setFilter({ days: Number(event.currentTarget.value) })}
      >
        {PERIODS.map(({ days, about }) => (
          <option value={String(days)}>{days === Infinity ? 'Any date' : about}</option>
        ))}
      </select>
      <select
        aria-label="Groups"
        value={filter.grouping}
        onChange={(event) => {
          const wanted = event.currentTarget.value;
          list.setFilter({
            grouping:
              wanted === 'project' || wanted === 'tool' || wanted === 'date' ? wanted : 'none',
          });
        }}
      >
        {Object.entries(GROUPINGS).map(([name, about]) => (
          <option value={name}>{about}</option>
        ))}
      </select>
      <label class="archived-too">
        <input
          type="checkbox"
          checked={filter.archived}
          onChange={(event) => list.setFilter({ archived: event.currentTarget.checked })}
        />
        Archived ones too
      </label>
    </div>
  );
}

/** The button that archives a session, or restores it from the archive. */
function PutAway({ live, row }: { live: Live; row: SessionRow }) {
  return (
    <button type="button" class="put-away" onClick={() => void live.sorting.archive(row.sessionId)}>
      {row.archived ? 'Bring back' : 'Archive'}
    </button>
  );
}

interface LineProps {
  live: Live;
  line: ListLine | undefined;
  selected: boolean;
  children: ComponentChildren;
  below?: ComponentChildren;
}

function Line({ live, line, selected, children, below }: LineProps) {
  return (
    <li>
      <button
        type="button"
        class={`session-line ${selected ? 'selected' : ''}`}
        aria-current={selected ? 'true' : undefined}
        onClick={() => live.list.accept(line)}
      >
        {children}
      </button>
      {below}
    </li>
  );
}

function SessionLine({ row }: { row: SessionRow }) {
  const title = visible(row.name ?? row.firstMessage) || '(empty)';
  return (
    <>
      <span class={`session-title ${row.name === undefined ? 'unnamed' : ''}`} dir="auto">
        {title}
      </span>
      <span class="session-about">
        {row.diagnostic ? visible(row.diagnostic.message) : visible(row.cwd)}
        {openOn(hostsOf(row.log?.openOn))}
        {marksOf(row)}
      </span>
      <span class="session-count">{row.messageCount.toLocaleString('en')}</span>
      <time dateTime={row.modified}>{age(row.modified, Date.now())}</time>
    </>
  );
}

/** The tags, marks and git branch of a session, to follow other words about it. */
function marksOf(row: SessionRow): string {
  const marks = (row.tags ?? []).map((tag) => `#${tag}`);
  if (row.pinned) marks.push('pinned');
  if (row.archived) marks.push('archived');
  if (row.git?.branch !== undefined) marks.push(`on ${row.git.branch}`);
  return marks.map((mark) => ` · ${visible(mark)}`).join('');
}

function TeamLine({ row }: { row: TeamRow }) {
  const place = [row.host, row.cwd].filter(Boolean).join(':');
  return (
    <>
      <span class="session-title elsewhere" dir="auto">
        {visible(row.name ?? row.sessionId)}
      </span>
      <span class="session-about">
        {visible(place)}
        {openOn(hostsOf(row.openOn))}
      </span>
      <span class="session-count">{row.entries?.toLocaleString('en')}</span>
      {row.modified !== undefined && (
        <time dateTime={row.modified}>{age(row.modified, Date.now())}</time>
      )}
    </>
  );
}

/** The machines that have a session open, to follow other words about it. */
export function openOn(hosts: string[]): string {
  return hosts.length === 0 ? '' : ` · open on ${visible(hosts.join(', '))}`;
}
