/** The parts of the page that need a daemon: buttons, the bar below the text, and dialogs. */

import { useState } from 'preact/hooks';
import type { App } from '../model/app.ts';
import type { Live } from '../model/live.ts';
import type { Session } from '../model/session.ts';
import { hint } from '../model/keys.ts';
import { clock } from '../text/time.ts';
import { plural, visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';
import { IconButton } from './icons.tsx';
import { QuestionDialog } from './question.tsx';
import { ArchiveDialog, AsideDialog, NameBranchDialog } from './branches.tsx';
import { CandidatesDialog, FamilyDialog, TagsDialog } from './sorting.tsx';
import { CommandDialog } from './command.tsx';
import { ExportDialog } from './export.tsx';
import { HandoffDialog } from './handoff.tsx';

export function LiveButtons({ app, live }: { app: App; live: Live }) {
  const off = !live.canWrite;
  const { moves } = live;
  return (
    <>
      <IconButton
        icon="undo"
        name="Undo the last move"
        hint="u"
        disabled={off}
        run={() => moves.undo('undo_navigation')}
      />
      <IconButton
        icon="redo"
        name="Redo it"
        hint="U"
        disabled={off}
        run={() => moves.undo('redo_navigation')}
      />
      {live.summarizes && (
        <IconButton
          icon="compact"
          name="Compact the context"
          hint={hint('compact')}
          disabled={off}
          run={() => live.show({ kind: 'compact' })}
        />
      )}
      <IconButton
        icon="export"
        name="Export the session"
        hint={hint('export')}
        disabled={live.link?.state !== 'open'}
        run={() => app.act('export')}
      />
      <IconButton
        icon="command"
        name="Run a command"
        hint={hint('command')}
        disabled={off}
        run={() => app.act('command')}
      />
      <IconButton icon="list" name="Sessions" hint={hint('sessions')} run={() => live.showList()} />
    </>
  );
}

interface BarProps {
  app: App;
  live: Live;
  session: Session;
}

export function LiveBar({ app, live, session }: BarProps) {
  const { moves } = live;
  const row = session.tree.row();
  if (moves.running) return <RunningBar live={live} />;
  if (moves.composing) return <Composer live={live} />;
  if (session.source.session.readOnly) {
    return <div class="bar quiet">This session can only be read.</div>;
  }
  const off = live.link?.state !== 'open';
  return (
    <div class="bar">
      {live.heldUntil !== undefined && (
        <p class="held">
          The agent's last answer may still grow and is not here yet. What the agent writes next
          brings it, or an import after {clock(live.heldUntil, new Date().toISOString())}.
        </p>
      )}
      {row && !row.isLeaf ? (
        <button
          type="button"
          class="main-button"
          disabled={off}
          onClick={() => live.askToGo(row.id)}
        >
          Go here <kbd>enter</kbd>
        </button>
      ) : (
        <button type="button" class="main-button" onClick={() => moves.compose()}>
          Write a message <kbd>I</kbd>
        </button>
      )}
      {row && !row.isLeaf && (
        <button type="button" class="quiet-button" onClick={() => app.act('to-active')}>
          To the leaf <kbd>A</kbd>
        </button>
      )}
      {row && (
        <button
          type="button"
          class="quiet-button"
          disabled={off}
          onClick={() => live.askHandoff(row.id)}
        >
          Continue in an agent <kbd>{hint('continue-elsewhere')}</kbd>
        </button>
      )}
      <label class="ask">
        <input
          type="checkbox"
          disabled={off}
          checked={live.asksBeforeMoves}
          onChange={(event) => live.askBeforeMoves(event.currentTarget.checked)}
        />
        Ask me before others move, fork or compact
      </label>
    </div>
  );
}

function RunningBar({ live }: { live: Live }) {
  const { running } = live.moves;
  if (!running) return null;
  return (
    <div class="bar running" role="status">
      <div class="running-head">
        <i class="spinner" aria-hidden="true" />
        <span>{running.cancelling ? 'Cancelling' : visible(running.about)}…</span>
        <button
          type="button"
          class="quiet-button"
          disabled={running.cancelling}
          onClick={() => live.moves.cancel()}
        >
          Cancel
        </button>
      </div>
      {running.text !== '' && (
        <div class="stream" dir="auto" tabIndex={0} role="region" aria-label="The summary so far">
          {running.text}
        </div>
      )}
    </div>
  );
}

function Composer({ live }: { live: Live }) {
  const { moves } = live;
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') moves.closeDraft();
    else if (event.key === 'Enter' && !event.shiftKey && !event.altKey) void moves.send();
    else return;
    event.preventDefault();
  };
  return (
    <form
      id="compose"
      class="bar compose"
      onSubmit={(event) => {
        event.preventDefault();
        void moves.send();
      }}
    >
      <textarea
        aria-label="New user message"
        placeholder="A new message at the leaf. Shift and Enter make a new line."
        rows={Math.min(10, Math.max(3, moves.draft.split('\n').length))}
        value={moves.draft}
        disabled={moves.sending}
        onInput={(event) => moves.setDraft(event.currentTarget.value)}
        onKeyDown={keys}
      />
      <div class="compose-buttons">
        <button
          type="submit"
          class="main-button"
          disabled={moves.sending || live.link?.state !== 'open'}
        >
          Send <kbd>enter</kbd>
        </button>
        <button type="button" class="quiet-button" onClick={() => moves.closeDraft()}>
          Close <kbd>esc</kbd>
        </button>
      </div>
    </form>
  );
}

export function LiveDialogs({ app, live }: { app: App; live: Live }) {
  const { dialog } = live;
  const close = (): void => live.show(undefined);
  return (
    <>
      <LinkBanner live={live} />
      {live.questions.length > 0 && dialog?.kind !== 'question' && (
        <button type="button" class="question-waits" onClick={() => live.openQuestion()}>
          {plural(live.questions.length, 'question')} waiting <kbd>{hint('answer')}</kbd>
        </button>
      )}
      {dialog?.kind === 'go' && <GoDialog live={live} dialog={dialog} close={close} />}
      {dialog?.kind === 'label' && <LabelDialog live={live} dialog={dialog} close={close} />}
      {dialog?.kind === 'name-branch' && (
        <NameBranchDialog live={live} id={dialog.id} close={close} />
      )}
      {dialog?.kind === 'archive' && <ArchiveDialog live={live} id={dialog.id} close={close} />}
      {dialog?.kind === 'aside' && <AsideDialog live={live} close={close} />}
      {dialog?.kind === 'tags' && <TagsDialog live={live} close={close} />}
      {dialog?.kind === 'family' && (
        <FamilyDialog live={live} relatives={dialog.relatives} born={dialog.born} close={close} />
      )}
      {dialog?.kind === 'candidates' && (
        <CandidatesDialog live={live} candidates={dialog.candidates} close={close} />
      )}
      {dialog?.kind === 'compact' && <CompactDialog live={live} close={close} />}
      {dialog?.kind === 'command' && (
        <CommandDialog app={app} live={live} commands={dialog.commands} close={close} />
      )}
      {dialog?.kind === 'handoff' && (
        <HandoffDialog key={dialog.id} app={app} live={live} id={dialog.id} close={close} />
      )}
      {dialog?.kind === 'export' && <ExportDialog app={app} live={live} close={close} />}
      {dialog?.kind === 'output' && (
        <Dialog title={`Output of ${visible(dialog.name)}`} close={close}>
          <pre class="output" tabIndex={0}>
            {dialog.output}
          </pre>
        </Dialog>
      )}
      {dialog?.kind === 'question' && (
        <QuestionDialog
          key={dialog.question.eventId}
          live={live}
          question={dialog.question}
          close={close}
        />
      )}
    </>
  );
}

function LinkBanner({ live }: { live: Live }) {
  const state = live.link?.state ?? 'refused';
  if (state === 'open') return null;
  if (state === 'connecting') return <p class="banner quiet">Connecting…</p>;
  if (state === 'refused') {
    return (
      <p class="banner" role="alert">
        The daemon does not know this page. Run <code>treelined web</code> again, and use the page
        that it opens.
      </p>
    );
  }
  return (
    <p class="banner" role="alert">
      The connection to the daemon is lost. The page comes back by itself, with your place and your
      drafts.{' '}
      <button type="button" class="quiet-button" onClick={() => live.reconnect()}>
        Try now
      </button>
    </p>
  );
}

interface GoProps {
  live: Live;
  dialog: { id: string; count: number | undefined; isUser: boolean; canSummarize: boolean };
  close: () => void;
}

function GoDialog({ live, dialog, close }: GoProps) {
  const [focus, setFocus] = useState('');
  const { id, count, isUser, canSummarize } = dialog;
  return (
    <Dialog title="Go to" close={close}>
      <p>
        {count === undefined
          ? ''
          : `${plural(count, 'entry is', 'entries are')} left behind; they stay in the tree.`}
        {isUser && ' Its text opens in the editor.'}
      </p>
      <div class="choices">
        <button type="button" class="main-button" onClick={() => void live.moves.go(id, false, '')}>
          {canSummarize ? 'No summary' : 'Go there'}
        </button>
        {canSummarize && (
          <button type="button" onClick={() => void live.moves.go(id, true, focus)}>
            Summarize
          </button>
        )}
      </div>
      {canSummarize && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void live.moves.go(id, true, focus);
          }}
        >
          <label class="field">
            What the summary shall focus on
            <input
              value={focus}
              placeholder="optional"
              onInput={(event) => setFocus(event.currentTarget.value)}
            />
          </label>
        </form>
      )}
    </Dialog>
  );
}

interface LabelProps {
  live: Live;
  dialog: { id: string; label: string };
  close: () => void;
}

function LabelDialog({ live, dialog, close }: LabelProps) {
  const [label, setLabel] = useState(dialog.label);
  return (
    <Dialog title="Label" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void live.moves.label(dialog.id, label);
        }}
      >
        <label class="field">
          The label of this entry; blank removes it
          <input autofocus value={label} onInput={(event) => setLabel(event.currentTarget.value)} />
        </label>
        <div class="choices">
          <button type="submit" class="main-button">
            Set
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function CompactDialog({ live, close }: { live: Live; close: () => void }) {
  const [text, setText] = useState('');
  return (
    <Dialog title="Compact the context" close={close}>
      <p>
        The older part of the context is replaced by a summary. Nothing is removed from the session.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void live.moves.compact(text);
        }}
      >
        <label class="field">
          What the summary shall focus on
          <input
            autofocus
            value={text}
            placeholder="optional"
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <div class="choices">
          <button type="submit" class="main-button">
            Compact
          </button>
        </div>
      </form>
    </Dialog>
  );
}
