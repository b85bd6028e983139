/** The components of blocks. HTML of the daemon goes through `setMarkup`. */

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { setMarkup } from '../text/markup.ts';
import { colourWhenSeen } from '../text/highlight.ts';
import { bytes, plural, visible } from '../text/visible.ts';
import type { App } from '../model/app.ts';
import type { Session } from '../model/session.ts';
import { IconButton } from './icons.tsx';

export interface BlockContext {
  app: App;
  session: Session;
  /** The position of the block. It is the key by which open parts are remembered. */
  place: string;
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

export function Truncated({ bytes: left }: { bytes: number | undefined }) {
  return left === undefined ? null : <div class="truncated">{bytes(left)} are left out.</div>;
}

/** Code with more lines is folded. */
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

/** The numbers of lines that a diff adds and removes. */
export function diffCounts(text: string): { added: number; removed: number } {
  const lines = text.split('\n');
  return {
    added: lines.filter((line) => line.startsWith('+')).length,
    removed: lines.filter((line) => line.startsWith('-')).length,
  };
}

interface FoldProps {
  class: string;
  open: boolean;
  toggle: (open: boolean) => void;
  head: ComponentChildren;
  children: ComponentChildren;
}

/** A part that the reader can open. Its content exists only while it is open. */
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
