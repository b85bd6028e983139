/** One entry of the path: its speaker, its time, its buttons, and its blocks. */

import type { Row } from '../wire.ts';
import type { App } from '../model/app.ts';
import { shape, type Session } from '../model/session.ts';
import { clock } from '../text/time.ts';
import { visible } from '../text/visible.ts';
import { Blocks } from './blocks.tsx';
import { IconButton } from './icons.tsx';
import { speakerOf, styleClass, toneOf } from './words.ts';

interface Props {
  app: App;
  session: Session;
  row: Row;
  previous: Row | undefined;
}

export function EntryView({ app, session, row, previous }: Props) {
  if (shape(row) === 'line') {
    return (
      <p class="setting">
        <span>{speakerOf(row)}</span> {visible(row.preview)}
      </p>
    );
  }
  const body = session.bodies.get(row.id);
  const selected = row.id === session.path?.id;
  const tone = toneOf(row);
  const isCard = tone === 'summary' || tone === 'compaction';
  const time = clock(row.timestamp, previous?.timestamp);
  return (
    <article
      class={`entry ${tone}${selected ? ' selected' : ''}${row.isError ? ' failed' : ''}${styleClass(row)}`}
      aria-label={`${speakerOf(row)}${time ? `, ${time}` : ''}`}
      aria-current={selected ? 'true' : undefined}
    >
      <header>
        {!isCard && (
          <span class="speaker">{row.icon === undefined ? speakerOf(row) : visible(row.icon)}</span>
        )}
        {row.label !== undefined && <span class="label">{visible(row.label)}</span>}
        {row.isError === true && <span class="flag">failed</span>}
        {body?.model !== undefined && <span class="model">{visible(body.model)}</span>}
        <span class="space" />
        <EntryTools app={app} row={row} />
        <time dateTime={row.timestamp}>{time}</time>
      </header>
      <div class="body">
        {body ? (
          <Blocks blocks={body.blocks} context={{ app, session, place: row.id }} />
        ) : (
          <p class="waiting" dir="auto">
            {visible(row.preview)}
          </p>
        )}
        {body?.blocks.length === 0 && <p class="plain quiet">{visible(row.preview)}</p>}
        {body?.omittedBlocks !== undefined && (
          <p class="truncated">{body.omittedBlocks} more blocks are left out.</p>
        )}
      </div>
    </article>
  );
}

function EntryTools({ app, row }: { app: App; row: Row }) {
  const { live } = app;
  const canWrite = live?.canWrite === true;
  const route = app.routeTo(row.id);
  return (
    <span class="tools">
      {canWrite && (
        <>
          <IconButton icon="go" name="Go here" run={() => live.askToGo(row.id)} />
          {row.role === 'user' && (
            <IconButton icon="edit" name="Edit it again" run={() => live.rewind(row.id)} />
          )}
          <IconButton icon="label" name="Label" run={() => live.askLabel(row.id, row.label)} />
        </>
      )}
      <IconButton icon="copy" name="Copy the text" run={() => void app.copyEntry(row.id)} />
      <a
        class="icon-button"
        href={route}
        aria-label="Link to this entry"
        title="Link to this entry"
        onClick={(event) => {
          event.preventDefault();
          history.replaceState(null, '', route);
          void app.copy(location.href, 'The link is copied.');
        }}
      >
        #
      </a>
    </span>
  );
}
