/** Two branches side by side: their common part, and the part that only one of them has. */

import { useState } from 'preact/hooks';
import type { App } from '../model/app.ts';
import type { Session } from '../model/session.ts';
import type { ComparedBranch, Comparison } from '../wire.ts';
import { plural, shorten, visible } from '../text/visible.ts';
import { Blocks } from './blocks.tsx';
import { FileList } from './parts.tsx';
import { blockText } from '../source/texts.ts';
import { IconButton } from './icons.tsx';
import { Figures } from './stats.tsx';
import { speakerOf, toneOf } from './words.ts';

/** The number of entries of a branch that are shown at first, and added with each click. */
const STEP = 50;

interface Props {
  app: App;
  session: Session;
  comparison: Comparison;
}

export function CompareView({ app, session, comparison }: Props) {
  const { ancestorId } = comparison;
  const ancestor = ancestorId === null ? undefined : session.bodies.get(ancestorId);
  const text = ancestor?.blocks.map(blockText).join(' ').replace(/\s+/g, ' ').trim();
  return (
    <section id="compare" aria-label="Two branches" tabIndex={-1}>
      <header class="compare-head">
        <div>
          <h2>Two branches</h2>
          {ancestorId === null ? (
            <p>They have no entry in common.</p>
          ) : (
            <p>
              Both come from{' '}
              <button type="button" class="link-button" onClick={() => leave(app, ancestorId)}>
                {shorten(visible(text === undefined || text === '' ? ancestorId : text), 110)}
              </button>
            </p>
          )}
        </div>
        <IconButton icon="close" name="Close the comparison" hint="esc" run={() => app.close()} />
      </header>
      <div class="sides">
        <Side app={app} session={session} branch={comparison.a} name="One branch" />
        <Side app={app} session={session} branch={comparison.b} name="The other branch" />
      </div>
    </section>
  );
}

function leave(app: App, id: string): void {
  app.close();
  void app.go(id);
}

interface SideProps {
  app: App;
  session: Session;
  branch: ComparedBranch;
  name: string;
}

function Side({ app, session, branch, name }: SideProps) {
  const [count, setCount] = useState(STEP);
  const { entryIds, files, stats } = branch;
  return (
    <section class="side" aria-label={name}>
      <h3>
        {entryIds.length === 0
          ? 'Ends at the common entry'
          : plural(entryIds.length, 'entry', 'entries')}
      </h3>
      <Figures stats={stats} />
      <FileList files={files} />
      {entryIds.slice(0, count).map((id) => (
        <Compared key={id} app={app} session={session} id={id} />
      ))}
      {entryIds.length > count && (
        <button type="button" class="more" onClick={() => setCount(count + STEP)}>
          Show {Math.min(STEP, entryIds.length - count)} more of {entryIds.length}
        </button>
      )}
    </section>
  );
}

function Compared({ app, session, id }: { app: App; session: Session; id: string }) {
  const body = session.bodies.get(id);
  if (!body) return <p class="waiting">…</p>;
  const empty = body.blocks.length === 0 || (body.role === 'toolResult' && body.type === 'message');
  if (empty) return null;
  return (
    <article class={`entry ${toneOf(body)}`}>
      <header>
        <span class="speaker">{speakerOf(body)}</span>
        <span class="space" />
        <span class="tools">
          <IconButton icon="go" name="Show it in the tree" run={() => leave(app, id)} />
        </span>
      </header>
      <div class="body">
        <Blocks blocks={body.blocks} context={{ app, session, place: `compare/${id}` }} />
      </div>
    </article>
  );
}
