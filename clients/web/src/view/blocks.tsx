/** The blocks of an entry. Every text is shown as text; the daemon's HTML goes through `setMarkup`. */

import { Component, type ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Block } from '../wire.ts';
import { setMarkup, textOf } from '../text/markup.ts';
import { colourWhenSeen } from '../text/highlight.ts';
import { bytes, plural, shorten, visible } from '../text/visible.ts';
import type { App } from '../model/app.ts';
import type { Session } from '../model/session.ts';
import { IconButton } from './icons.tsx';
import { ToolCallView } from './tool.tsx';
import { SummaryCard } from './summary.tsx';

export interface BlockContext {
  app: App;
  session: Session;
  /** Names the block's position, as the key for what is open in it. */
  place: string;
}

/** Draws its children again only if their block is another one. */
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
      return <ToolCallView call={block} context={context} />;
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
      // A kind of a newer daemon.
      return null;
  }
}

export function Markup({ html }: { html: string }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setMarkup(element, html);
    for (const code of element.querySelectorAll('pre > code[class]')) {
      colourWhenSeen(code, code.className.replace('language-', ''));
    }
    for (const wide of element.querySelectorAll('pre')) wide.tabIndex = 0;
  }, [html]);
  return <div class="prose" dir="auto" ref={box} />;
}

function Truncated({ bytes: left }: { bytes: number | undefined }) {
  return left === undefined ? null : <div class="truncated">{bytes(left)} are left out.</div>;
}

/** Code of more lines is folded. */
const LINES = 30;

interface CodeProps {
  text: string;
  language?: string | undefined;
  truncated?: number | undefined;
  app: App;
}

export function Code({ text, language, truncated, app }: CodeProps) {
  const box = useRef<HTMLElement>(null);
  const [whole, setWhole] = useState(false);
  const lines = text.split('\n').length;
  const shown = whole || lines <= LINES + 5 ? text : text.split('\n', LINES).join('\n');
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    element.textContent = shown;
    if (language !== undefined) colourWhenSeen(element, language);
  }, [shown, language]);
  return (
    <figure class="code">
      <div class="code-tools">
        {language !== undefined && language !== 'text' && <span>{language}</span>}
        <IconButton icon="copy" name="Copy the code" run={() => void app.copy(text)} />
      </div>
      <pre tabIndex={0}>
        <code ref={box} />
      </pre>
      {shown !== text && (
        <button type="button" class="more" onClick={() => setWhole(true)}>
          Show all {lines.toLocaleString('en')} lines
        </button>
      )}
      <Truncated bytes={truncated} />
    </figure>
  );
}

const DIFF_LINES = 400;

const SIDES = new Map([
  ['+', 'added'],
  ['-', 'removed'],
  ['@', 'place-of'],
]);

/** How many lines a diff adds and removes. */
export function diffCounts(text: string): { added: number; removed: number } {
  const lines = text.split('\n');
  return {
    added: lines.filter((line) => line.startsWith('+')).length,
    removed: lines.filter((line) => line.startsWith('-')).length,
  };
}

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

interface FoldProps {
  class: string;
  open: boolean;
  toggle: (open: boolean) => void;
  head: ComponentChildren;
  children: ComponentChildren;
}

/** A part that the reader opens. What is in it exists only while it is open. */
export function Fold(props: FoldProps) {
  return (
    <details
      class={`fold-part ${props.class}`}
      open={props.open}
      onToggle={(event) => {
        if (event.currentTarget.open !== props.open) props.toggle(event.currentTarget.open);
      }}
    >
      <summary>{props.head}</summary>
      {props.open && <div class="fold-body">{props.children}</div>}
    </details>
  );
}

export function FileList({ files }: { files: { readFiles: string[]; modifiedFiles: string[] } }) {
  const parts = [
    ['modified', files.modifiedFiles],
    ['read', files.readFiles],
  ] as const;
  return (
    <div class="files">
      {parts
        .filter(([, names]) => names.length > 0)
        .map(([word, names]) => (
          <div>
            <h4>
              {plural(names.length, 'file')} {word}
            </h4>
            <ul>
              {names.slice(0, 200).map((name) => (
                <li dir="auto">{visible(name)}</li>
              ))}
            </ul>
          </div>
        ))}
    </div>
  );
}
