/** The whole page: the head, the tree, the text, and the dialogs over them. */

import type { App } from '../model/app.ts';
import type { Session } from '../model/session.ts';
import { hint } from '../model/keys.ts';
import { FILTERS, type Filter } from '../wire.ts';
import { plural, visible } from '../text/visible.ts';
import { parseTime, day } from '../text/time.ts';
import { CompareView } from './compare.tsx';
import { Help, Redactions } from './help.tsx';
import { Icon, IconButton } from './icons.tsx';
import { LiveBar, LiveButtons, LiveDialogs } from './live.tsx';
import { PathPane } from './path.tsx';
import { Sessions } from './sessions.tsx';
import { StatsView } from './stats.tsx';
import { TreePane } from './tree.tsx';
import { Divider } from './divider.tsx';

export function Page({ app }: { app: App }) {
  const { session, live } = app;
  if (live && (!session || live.listing)) {
    return (
      <div class="page">
        <Sessions app={app} live={live} />
        <LiveDialogs app={app} live={live} />
        <Status app={app} />
      </div>
    );
  }
  if (!session) return <Status app={app} />;
  const classes = ['page', app.drawer ? 'drawer' : '', app.treeHidden ? 'no-tree' : ''];
  return (
    <div class={classes.filter(Boolean).join(' ')}>
      <Head app={app} session={session} />
      <div class="panes">
        <nav class="tree-pane" aria-label="Tree">
          <TreeTools app={app} session={session} />
          <TreePane key={session} app={app} session={session} />
          <TreeFoot app={app} session={session} />
        </nav>
        <Divider />
        <div class="veil" onClick={() => app.back()} />
        <main class="path-pane">
          {session.compared ? (
            <CompareView app={app} session={session} comparison={session.compared} />
          ) : (
            <>
              <PathPane app={app} session={session} />
              {live && <LiveBar app={app} live={live} session={session} />}
            </>
          )}
        </main>
      </div>
      {app.overlay === 'help' && <Help app={app} />}
      {app.overlay === 'stats' && <StatsView app={app} session={session} />}
      {app.overlay === 'redactions' && <Redactions app={app} />}
      {live && <LiveDialogs app={app} live={live} />}
      <Status app={app} />
    </div>
  );
}

function Head({ app, session }: { app: App; session: Session }) {
  const info = session.source.session;
  const created = parseTime(info.created);
  const about = [
    info.cwd === undefined ? '' : visible(info.cwd),
    created ? day(created) : '',
    plural(info.entryCount, 'entry', 'entries'),
    alsoOpenOn(app.live?.presence.hosts ?? []),
  ];
  const replaced = app.file?.meta.redactions.reduce((sum, one) => sum + one.count, 0) ?? 0;
  const showDrawer = (): void => {
    app.drawer = !app.drawer;
    app.changed();
  };
  return (
    <header class="head">
      <span class="menu">
        <IconButton icon="menu" name="Tree" run={showDrawer} />
      </span>
      <div class="title">
        <h1 dir="auto">{visible(info.title) || 'A session without a name'}</h1>
        <p>{about.filter(Boolean).join(' · ')}</p>
      </div>
      {app.file && (replaced > 0 || !app.file.meta.redacted) && (
        <button type="button" class="quiet-button" onClick={() => app.show('redactions')}>
          {replaced > 0 ? `${plural(replaced, 'secret')} replaced` : 'not redacted'}
        </button>
      )}
      <div class="head-tools">
        <IconButton
          icon="previous-prompt"
          name="User message before"
          hint={hint('previous-prompt')}
          run={() => app.act('previous-prompt')}
        />
        <IconButton
          icon="next-prompt"
          name="Next user message"
          hint={hint('next-prompt')}
          run={() => app.act('next-prompt')}
        />
        <IconButton
          icon="leaf"
          name="To the leaf"
          hint={hint('to-active')}
          run={() => app.act('to-active')}
        />
        {app.live && <LiveButtons app={app} live={app.live} />}
        <IconButton
          icon="compare"
          name="Compare"
          hint={`${hint('mark')} marks, ${hint('compare')} compares`}
          run={() => app.act('compare')}
        />
        <IconButton
          icon="stats"
          name="Statistics"
          hint={hint('stats')}
          run={() => app.show('stats')}
        />
        <IconButton icon="help" name="Keys" hint={hint('help')} run={() => app.show('help')} />
      </div>
    </header>
  );
}

function alsoOpenOn(hosts: string[]): string {
  return hosts.length === 0 ? '' : `also open on ${visible(hosts.join(', '))}`;
}

const FILTER_WORDS: Record<Filter, string> = {
  default: 'Conversation',
  'no-tools': 'Without tools',
  'user-only': 'User only',
  'labeled-only': 'Labelled',
  all: 'Everything',
};

function TreeTools({ app, session }: { app: App; session: Session }) {
  const { tree } = session;
  const searchKeys = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      if (tree.typed !== '') app.search('');
      else app.drawer = false;
    } else if (event.key === 'Enter' || event.key === 'ArrowDown') tree.move(tree.cursor);
    else return;
    event.preventDefault();
    document.querySelector<HTMLElement>('#tree')?.focus();
    app.changed();
  };
  return (
    <div class="tree-tools">
      <label class="search">
        <Icon name="search" />
        <input
          id="search"
          type="search"
          aria-label="Search in this session"
          placeholder="Search"
          autocomplete="off"
          spellcheck={false}
          value={tree.typed}
          onInput={(event) => app.search(event.currentTarget.value)}
          onKeyDown={searchKeys}
        />
        {tree.typed === '' && <kbd aria-hidden="true">/</kbd>}
      </label>
      <select
        aria-label="Filter"
        value={tree.filter}
        onChange={(event) => {
          const filter = FILTERS.find((name) => name === event.currentTarget.value);
          if (filter) tree.setFilter(filter);
        }}
      >
        {FILTERS.map((filter) => (
          <option value={filter}>{FILTER_WORDS[filter]}</option>
        ))}
      </select>
    </div>
  );
}

function TreeFoot({ app, session }: { app: App; session: Session }) {
  const { tree } = session;
  const { view } = tree;
  if (!view) return null;
  const place = `${(tree.cursor + 1).toLocaleString('en')}/${view.total.toLocaleString('en')}`;
  const searching =
    tree.searching === undefined ? '' : ` · reading ${Math.round(tree.searching * 100)} %`;
  const archived = view.archivedBranches ?? 0;
  const shed = view.shedBranches ?? 0;
  return (
    <p class="tree-foot" role="status">
      {tree.query && !tree.query.error
        ? `${plural(view.total, 'hit')}${searching}`
        : `${view.total === 0 ? '0' : place}${view.hidden > 0 ? ` · ${view.hidden.toLocaleString('en')} hidden` : ''}`}
      {tree.marks.length > 0 && ` · ${tree.marks.length} marked`}
      {tree.isSeeking && ' · looking…'}
      {archived > 0 && (
        <button type="button" class="quiet-button" onClick={() => app.act('show-archived')}>
          {plural(archived, 'archived branch', 'archived branches')} ·{' '}
          {tree.archived ? 'hide' : 'show'} <kbd>{hint('show-archived')}</kbd>
        </button>
      )}
      {shed > 0 && ` · ${plural(shed, 'shed branch', 'shed branches')}`}
    </p>
  );
}

function Status({ app }: { app: App }) {
  return (
    <div class="notices" role="status" aria-live="polite">
      {app.notices.map((notice) => (
        <p class={`notice ${notice.level}`}>{visible(notice.text)}</p>
      ))}
    </div>
  );
}
