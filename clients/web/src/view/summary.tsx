/** A summary as a card. One click shows the entries that it replaces. */

import type { Summary } from '../wire.ts';
import { plural, visible } from '../text/visible.ts';
import { FileList, Fold, Markup, type BlockContext } from './parts.tsx';
import { Icon } from './icons.tsx';

export function SummaryCard({ block, context }: { block: Summary; context: BlockContext }) {
  const { app, session, place } = context;
  const { replaced, files } = block;
  const count = files ? files.readFiles.length + files.modifiedFiles.length : 0;
  return (
    <section class={`summary-card ${block.of === 'compaction' ? 'compaction' : 'branch'}`}>
      <h3>
        {visible(block.title)}
        {block.tokens !== undefined && (
          <span class="tokens">{block.tokens.toLocaleString('en')} tokens before</span>
        )}
      </h3>
      <Markup html={block.html} />
      {files && count > 0 && (
        <Fold
          class="summary-files"
          open={session.isOpen(`${place}.f`, false)}
          toggle={(now) => session.toggle(`${place}.f`, now)}
          head={<span class="fold-name">{plural(count, 'file')}</span>}
        >
          <FileList files={files} />
        </Fold>
      )}
      {replaced && (
        <button type="button" class="quiet-button" onClick={() => void app.go(replaced.lastId)}>
          <Icon name="go" /> Show what it replaces
        </button>
      )}
    </section>
  );
}
