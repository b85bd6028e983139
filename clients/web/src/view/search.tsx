/** The search over the text of all sessions: its field with mode, completion and fault, and its hits. */

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { SessionList } from '../model/session-list.ts';
import {
  completed,
  faultParts,
  MODES,
  withWord,
  type Hit,
  type Mode,
  type TextSearch,
} from '../model/text-search.ts';
import { age } from '../text/time.ts';
import { plural, visible } from '../text/visible.ts';
import { Icon } from './icons.tsx';

const MODE_WORDS: Record<Mode, { name: string; about: string }> = {
  ask: { name: 'Ask', about: 'The best entries for a question' },
  words: { name: 'Words', about: 'Entries with all of these words' },
  literal: { name: 'Text', about: 'Entries with exactly this text' },
  regex: { name: 'Pattern', about: 'Entries that match a regular expression' },
};

export function SearchField({ list }: { list: SessionList }) {
  const field = useRef<HTMLInputElement>(null);
  const { text } = list;
  // The attribute `autofocus` works only once in a document, and the list may be opened many times.
  useLayoutEffect(() => field.current?.focus(), []);
  const take = (item: string): void => {
    const { completion } = text;
    if (!completion) return;
    const next = completed(list.typed, completion, item);
    list.search(next.text, next.cursor);
    // The cursor is set after the page is drawn, which puts the text into the field.
    queueMicrotask(() => {
      field.current?.focus();
      field.current?.setSelectionRange(next.cursor, next.cursor);
    });
  };
  const keys = (event: KeyboardEvent): void => {
    const first = text.completion?.items[0];
    if (event.key === 'Tab' && !event.shiftKey && first) take(first.text);
    else if (event.key === 'o' && event.ctrlKey) text.nextMode();
    else return;
    event.preventDefault();
  };
  return (
    <>
      <label class="search">
        <Icon name="search" />
        <input
          ref={field}
          type="search"
          aria-label="Search in all sessions"
          placeholder="Ask all sessions, or search names and text"
          autocomplete="off"
          spellcheck={false}
          aria-invalid={text.fault !== undefined}
          aria-describedby={text.fault ? 'search-fault' : undefined}
          value={list.typed}
          onInput={({ currentTarget: { value, selectionEnd } }) =>
            list.search(value, selectionEnd ?? value.length)
          }
          onKeyDown={keys}
        />
      </label>
      {text.completion && (
        <ul class="completion" aria-label="What may stand here">
          {text.completion.items.slice(0, 8).map(({ text, about }, at) => (
            <li key={text}>
              <button type="button" tabIndex={-1} onClick={() => take(text)}>
                <b>{visible(text)}</b> <span class="quiet">{visible(about ?? '')}</span>
                {at === 0 && <kbd>tab</kbd>}
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="modes" role="radiogroup" aria-label="How the text is understood">
        {MODES.map((mode) => (
          <button
            type="button"
            role="radio"
            aria-checked={text.mode === mode}
            title={`${MODE_WORDS[mode].about} (ctrl+o: the next mode)`}
            onClick={() => text.setMode(mode)}
          >
            {MODE_WORDS[mode].name}
          </button>
        ))}
        {text.within && (
          <button type="button" class="within" onClick={() => text.searchWithin(undefined)}>
            only in {visible(text.within.name) || 'one session'} <Icon name="close" />
          </button>
        )}
      </div>
      <SearchFault list={list} />
    </>
  );
}

/** Shows the text with its faulty word marked, and the reason. */
function SearchFault({ list }: { list: SessionList }) {
  const { fault } = list.text;
  if (!fault) return null;
  const parts = faultParts(list.typed, fault);
  return (
    <p id="search-fault" class="search-fault" role="alert">
      {parts && (
        <code dir="auto">
          {visible(parts[0])}
          <mark>{visible(parts[1])}</mark>
          {visible(parts[2])}
        </code>
      )}
      {visible(fault.reason)}
    </p>
  );
}

/** The words that no entry has, with known words that can replace them. */
export function NearWords({ list }: { list: SessionList }) {
  const { near } = list.text;
  return (
    <>
      {near.map(({ word, near, taken }) => {
        const others = near.filter((known) => known !== taken);
        return (
          <p class="near" key={word}>
            No entry has “{visible(word)}”.
            {taken !== undefined && ` The hits are of “${visible(taken)}”.`}
            {others.length > 0 && ' Did you mean '}
            {others.map((known, at) => (
              <>
                {at > 0 && ', '}
                <button
                  type="button"
                  class="link-button"
                  onClick={() => list.search(withWord(list.typed, word, known))}
                >
                  {visible(known)}
                </button>
              </>
            ))}
            {others.length > 0 && '?'}
          </p>
        );
      })}
    </>
  );
}

/** The button below the last hit of a session, which searches the session for the rest. */
export function MoreHits({ search, at }: { search: TextSearch; at: number }) {
  const count = search.moreAfter(at);
  const hit = search.hits[at];
  if (count === 0 || !hit) return null;
  const { sessionId, sessionName: name } = hit;
  return (
    <button
      type="button"
      class="quiet-button more-hits"
      onClick={() => search.searchWithin({ sessionId, name })}
    >
      {plural(count, 'more entry', 'more entries')} in this session
    </button>
  );
}

export function HitLine({ hit }: { hit: Hit }) {
  const chars = Array.from(hit.snippet);
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const [from, to] of hit.ranges) {
    parts.push(visible(chars.slice(end, from).join('')));
    parts.push(<mark>{visible(chars.slice(from, to).join(''))}</mark>);
    end = to;
  }
  parts.push(visible(chars.slice(end).join('')));
  const { onActivePath, reason, instead, leftInTurn } = hit.branch;
  const newest = leftInTurn?.newest[0];
  const leftHere = newest?.reason ?? newest?.end;
  return (
    <>
      <span class="session-title snippet" dir="auto">
        {parts}
      </span>
      <span class="session-about">
        {visible(hit.sessionName) || visible(hit.sessionId)}
        {onActivePath ? '' : ', on a branch that was left'}
      </span>
      <time dateTime={hit.at}>{age(hit.at, Date.now())}</time>
      {(reason ?? instead ?? leftHere) && (
        <span class="session-left">
          {reason && (
            <span dir="auto">
              <b>left:</b> {visible(reason.text)}
            </span>
          )}
          {instead && (
            <span dir="auto">
              <b>instead:</b> {visible(instead.text)}
            </span>
          )}
          {leftHere && (
            <span dir="auto">
              <b>left here:</b> {(leftInTurn?.count ?? 1) > 1 && `${leftInTurn?.count} branches, `}
              {visible(leftHere.text)}
            </span>
          )}
        </span>
      )}
    </>
  );
}
