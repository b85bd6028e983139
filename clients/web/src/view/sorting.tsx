/** The dialogs for tags, families and candidates. */

import { useState } from 'preact/hooks';
import type { Live } from '../model/live.ts';
import type { Candidate } from '../model/live-state.ts';
import type { Relative } from '../wire.ts';
import { age } from '../text/time.ts';
import { visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

interface Props {
  live: Live;
  close: () => void;
}

export function TagsDialog({ live, close }: Props) {
  const [text, setText] = useState('');
  return (
    <Dialog title="Tags of the session" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          close();
          void live.sorting.tag(text);
        }}
      >
        <label class="field">
          Words to add, and words behind a - to take away
          <input autofocus value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <div class="choices">
          <button type="submit" class="main-button">
            Tag it
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function FamilyDialog({
  live,
  close,
  relatives,
  born,
}: Props & { relatives: readonly Relative[]; born: string | undefined }) {
  return (
    <Dialog title="Sessions that come from each other" close={close}>
      <ul class="relatives">
        {relatives.map((row) => (
          <li
            key={row.sessionId}
            style={{ paddingInlineStart: `${String(Math.min(row.depth, 16))}em` }}
          >
            <button
              type="button"
              class="quiet-button"
              disabled={row.sessionId === live.sessionId}
              autofocus={row.sessionId === born}
              onClick={() => void live.sorting.openRelative(relatives, row)}
            >
              {row.sessionId === born ? '↗ ' : ''}
              {row.comesFrom ? `${visible(row.comesFrom.kind)} · ` : ''}
              {visible(row.name ?? row.firstMessage) || '(empty)'} · {age(row.modified, Date.now())}
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

export function CandidatesDialog({
  live,
  close,
  candidates,
}: Props & { candidates: readonly Candidate[] }) {
  const [reason, setReason] = useState('');
  return (
    <Dialog title="Answers to one question" close={close} wide>
      <label class="field">
        Why the chosen one; the others keep it
        <input autofocus value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <ul class="relatives">
        {candidates.map(({ tipId, outcome, isActive }) => (
          <li key={tipId}>
            <button
              type="button"
              class="quiet-button"
              onClick={() => void live.sorting.choose(tipId, reason)}
            >
              {isActive ? '• ' : ''}
              {visible(outcome)}
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
