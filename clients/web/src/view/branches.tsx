/** The dialogs for names and archive of branches, and for side questions. */

import { useState } from 'preact/hooks';
import type { Live } from '../model/live.ts';
import { Dialog } from './dialog.tsx';

interface Props {
  live: Live;
  id: string;
  close: () => void;
}

export function NameBranchDialog({ live, id, close }: Props) {
  const [name, setName] = useState('');
  return (
    <Dialog title="Name of the branch" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void live.branches.name(id, name);
        }}
      >
        <label class="field">
          The name of this branch; blank removes it
          <input autofocus value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <div class="choices">
          <button type="submit" class="main-button">
            Name it
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function AsideDialog({ live, close }: Pick<Props, 'live' | 'close'>) {
  const [question, setQuestion] = useState('');
  return (
    <Dialog title="By the way" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void live.branches.ask(question);
        }}
      >
        <label class="field">
          A question beside the conversation; the leaf stays
          <input
            autofocus
            value={question}
            onInput={(event) => setQuestion(event.currentTarget.value)}
          />
        </label>
        <div class="choices">
          <button type="submit" class="main-button">
            Ask it
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function ArchiveDialog({ live, id, close }: Props) {
  return (
    <Dialog title="Archive this branch?" close={close}>
      <p>
        The leaf is in it and moves to the fork above. Undo takes the leaf back, and the branch with
        it.
      </p>
      <div class="choices">
        <button type="button" class="main-button" onClick={() => void live.branches.putAway(id)}>
          Archive it
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}
