/** The dialog of an export: a person sees what is replaced before the file is written, and decides. */

import { useState } from 'preact/hooks';
import type { App } from '../model/app.ts';
import { Export, FORMATS, type ReviewedSecret } from '../model/export.ts';
import type { Live } from '../model/live.ts';
import { plural, visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

/** The most entries that are named for one secret. */
const SHOWN_IDS = 3;

interface Props {
  app: App;
  live: Live;
  close: () => void;
}

export function ExportDialog({ app, live, close }: Props) {
  const [made] = useState(() => new Export(live));
  const { secrets, failure } = made;
  const write = async (): Promise<void> => {
    const file = await made.write();
    if (!file) return;
    save(file.name, file.content);
    close();
    app.say(`Exported as ${file.name}.`);
  };
  return (
    <Dialog title="Export the session" close={close} wide>
      <label class="field">
        The file
        <select
          value={made.format}
          onChange={(event) => made.choose({ format: event.currentTarget.value })}
        >
          {FORMATS.map(({ format, name }) => (
            <option value={format}>{name}</option>
          ))}
        </select>
      </label>
      <div class="handed" role="status">
        {failure && (
          <>
            <p class="handed-failure">{visible(failure.message)}</p>
            <p>{failure.hint}</p>
          </>
        )}
        {!secrets && !failure && <p class="quiet">Looking for secrets…</p>}
        {secrets?.length === 0 && <p>Nothing in it looks like a secret.</p>}
      </div>
      {secrets && <Secrets made={made} secrets={secrets} />}
      <Words made={made} />
      <div class="choices">
        <button
          type="button"
          class="main-button"
          disabled={!secrets || made.isWriting}
          onClick={() => void write()}
        >
          {made.isWriting ? 'Writing…' : 'Save the file'}
        </button>
      </div>
    </Dialog>
  );
}

function Secrets({ made, secrets }: { made: Export; secrets: readonly ReviewedSecret[] }) {
  const found = secrets.filter(({ kind }) => kind !== 'unknown');
  const unknown = secrets.filter(({ kind }) => kind === 'unknown');
  return (
    <>
      {found.length > 0 && (
        <Group made={made} secrets={found} title={plural(found.length, 'secret')} />
      )}
      {unknown.length > 0 && (
        <Group
          made={made}
          secrets={unknown}
          title={`${plural(unknown.length, 'text')} that may be secret`}
        />
      )}
    </>
  );
}

interface GroupProps {
  made: Export;
  secrets: readonly ReviewedSecret[];
  title: string;
}

function Group({ made, secrets, title }: GroupProps) {
  return (
    <fieldset class="secrets">
      <legend>{title}: those with a mark are replaced</legend>
      {secrets.map((secret) => (
        <label key={secret.id}>
          <input
            type="checkbox"
            checked={made.isReplaced(secret)}
            onChange={(event) => made.decide(secret, event.currentTarget.checked)}
          />
          <code>{visible(secret.shown)}</code> {visible(secret.kind)}
          <span class="quiet">
            {' '}
            {plural(secret.length, 'character')}, {secret.count} ×{places(secret.entryIds)}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function places(ids: readonly string[]): string {
  if (ids.length === 0) return '';
  const more = ids.length > SHOWN_IDS ? ', …' : '';
  return ` in ${visible(ids.slice(0, SHOWN_IDS).join(', '))}${more}`;
}

function Words({ made }: { made: Export }) {
  const [word, setWord] = useState('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (word.trim() === '') return;
        made.choose({ words: [...made.words, word.trim()] });
        setWord('');
      }}
    >
      <label class="field">
        A word to replace too
        <input value={word} onInput={(event) => setWord(event.currentTarget.value)} />
      </label>
      <div class="choices">
        <button type="submit" disabled={word.trim() === ''}>
          Add the word
        </button>
        {made.words.map((each) => (
          <button
            type="button"
            key={each}
            onClick={() => made.choose({ words: made.words.filter((other) => other !== each) })}
          >
            Spare “{visible(each)}”
          </button>
        ))}
      </div>
    </form>
  );
}

/** Gives a text to the browser as a file. */
function save(name: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content]));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
