/** The blocks of an entry. Every text is shown as text, never as markup. */

import { Component, type ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Block } from '../wire.ts';
import { textOf } from '../text/markup.ts';
import { bytes, shorten, visible } from '../text/visible.ts';
import type { App } from '../model/app.ts';
import { IconButton } from './icons.tsx';
import { Code, diffCounts, Fold, Markup, Truncated, type BlockContext } from './parts.tsx';
import { ToolCallView } from './tool.tsx';
import { SummaryCard } from './summary.tsx';

/** Draws its children again only if their block has changed. */
class Same extends Component<{ of: unknown; children: ComponentChildren }> {
  override shouldComponentUpdate(next: { of: unknown }): boolean {
    return next.of !== this.props.of;
  }

  override render() {
    return <>{this.props.children}</>;
  }
}

export function Blocks({ blocks, context }: { blocks: Block[]; context: BlockContext }) {
  return (
    <>
      {blocks.map((block, at) => (
        <BlockView
          key={at}
          block={block}
          context={{ ...context, place: `${context.place}/${at}` }}
        />
      ))}
    </>
  );
}

function BlockView({ block, context }: { block: Block; context: BlockContext }) {
  switch (block.kind) {
    case 'html':
      return <Markup html={block.html} />;
    case 'code':
      return (
        <Same of={block}>
          <Code
            text={block.text}
            language={block.language}
            truncated={block.truncated}
            app={context.app}
          />
        </Same>
      );
    case 'diff':
      return (
        <Same of={block}>
          <Diff block={block} app={context.app} />
        </Same>
      );
    case 'image':
      return (
        <Same of={block}>
          <Picture mimeType={block.mimeType} data={block.data} />
        </Same>
      );
    case 'attachment':
      return (
        <p class="attachment">
          {visible(block.mimeType ?? 'attachment')}, {bytes(block.bytes)}
        </p>
      );
    case 'toolCall':
      return (
        <ToolCallView
          call={block}
          context={context}
          show={(blocks, place) => <Blocks blocks={blocks} context={{ ...context, place }} />}
        />
      );
    case 'thinking':
      return <Thinking html={block.html} context={context} />;
    case 'summary':
      return <SummaryCard block={block} context={context} />;
    case 'text':
      return (
        <div class="plain" dir="auto">
          {block.text}
          <Truncated bytes={block.truncated} />
        </div>
      );
    default:
      // A newer daemon may send other kinds of blocks.
      return null;
  }
}

const DIFF_LINES = 400;

const SIDES = new Map([
  ['+', 'added'],
  ['-', 'removed'],
  ['@', 'place-of'],
]);

function Diff({ block, app }: { block: Extract<Block, { kind: 'diff' }>; app: App }) {
  const [whole, setWhole] = useState(false);
  const lines = block.text.replace(/\n$/, '').split('\n');
  const shown = whole ? lines : lines.slice(0, DIFF_LINES);
  const { added, removed } = diffCounts(block.text);
  return (
    <figure class="diff">
      <figcaption>
        <span class="file" dir="auto">
          {visible(block.path ?? 'change')}
        </span>
        <span class="added">+{added}</span>
        <span class="removed">−{removed}</span>
        <IconButton icon="copy" name="Copy the change" run={() => void app.copy(block.text)} />
      </figcaption>
      <pre tabIndex={0}>
        {shown.map((line) => (
          <DiffLine line={line} />
        ))}
      </pre>
      {shown.length < lines.length && (
        <button type="button" class="more" onClick={() => setWhole(true)}>
          Show all {lines.length.toLocaleString('en')} lines
        </button>
      )}
      <Truncated bytes={block.truncated} />
    </figure>
  );
}

function DiffLine({ line }: { line: string }) {
  const side = SIDES.get(line[0] ?? '') ?? 'same';
  return (
    <div class={`line ${side}`}>
      <span class="sign">{line[0] ?? ' '}</span>
      <span>{line.slice(1)}</span>
    </div>
  );
}

const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

function Picture({ mimeType, data }: { mimeType: string; data: string }) {
  const [large, setLarge] = useState(false);
  if (!PICTURES.has(mimeType) || !/^[A-Za-z0-9+/]*={0,2}$/.test(data)) {
    return <p class="attachment">{visible(mimeType)}, not shown</p>;
  }
  return (
    <button
      type="button"
      class={`picture ${large ? 'large' : ''}`}
      aria-label={large ? 'Show the image smaller' : 'Show the image larger'}
      onClick={() => setLarge(!large)}
    >
      <img src={`data:${mimeType};base64,${data}`} alt="Image in the conversation" />
    </button>
  );
}

function Thinking({ html, context }: { html: string; context: BlockContext }) {
  const { session, place } = context;
  const open = session.isPartOpen('thinking', place, false);
  return (
    <Fold
      class="thinking"
      open={open}
      toggle={(now) => session.togglePart('thinking', place, now)}
      head={
        <>
          <span class="fold-name">Thinking</span>
          {!open && (
            <span class="fold-hint">{shorten(textOf(html).replace(/\s+/g, ' ').trim(), 90)}</span>
          )}
        </>
      }
    >
      <Markup html={html} />
    </Fold>
  );
}
