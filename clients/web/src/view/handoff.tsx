/** The preview of a handoff to another agent, and the command to copy, which continues there. */

import { useState } from 'preact/hooks';
import type { App } from '../model/app.ts';
import { AGENTS, Handoff, type HandoffPreview } from '../model/handoff.ts';
import type { Live } from '../model/live.ts';
import { plural, visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

interface Props {
  app: App;
  live: Live;
  /** The last entry of the conversation that is handed over. */
  id: string;
  close: () => void;
}

export function HandoffDialog({ app, live, id, close }: Props) {
  const [handoff] = useState(() => new Handoff(live, id));
  const text = handoff.preview?.text;
  const copied = handoff.isText ? text : handoff.command;
  return (
    <Dialog title="Continue in another agent" close={close}>
      <label class="field">
        The agent that goes on
        <select
          value={handoff.tool}
          onChange={(event) => handoff.choose({ tool: event.currentTarget.value })}
        >
          {AGENTS.map(({ tool, name }) => (
            <option value={tool}>{name}</option>
          ))}
        </select>
      </label>
      <label class="ask">
        <input
          type="checkbox"
          checked={handoff.learned}
          onChange={(event) => handoff.choose({ learned: event.currentTarget.checked })}
        />
        Begin with what the branch that is left has taught
      </label>
      <div class="handed" role="status">
        {handoff.preview && <Outcome preview={handoff.preview} />}
        {handoff.failure && (
          <>
            <p class="handed-failure">{visible(handoff.failure.message)}</p>
            <p>{handoff.failure.hint}</p>
          </>
        )}
        {handoff.size === 'compacted' && (
          <p>A summary of the earlier turns is written when the command runs.</p>
        )}
        {!handoff.preview && !handoff.failure && handoff.size !== 'compacted' && (
          <p class="quiet">Looking at what is handed over…</p>
        )}
      </div>
      {handoff.isLarge && (
        <label class="field">
          It is larger than the limit
          <select
            value={handoff.size}
            onChange={(event) => {
              const size = event.currentTarget.value;
              handoff.choose({
                size: size === 'compacted' || size === 'whole' ? size : 'limited',
              });
            }}
          >
            <option value="limited">choose</option>
            {!handoff.isText && (
              <option value="compacted">a summary in place of the earlier turns</option>
            )}
            <option value="whole">all of it, whatever its size</option>
          </select>
        </label>
      )}
      {!handoff.isText && copied === undefined && (
        <p class="handed-failure">
          There is no command to copy: the name of the file or of the entry has control characters.
        </p>
      )}
      {copied !== undefined && (
        <>
          <pre class="output command" tabIndex={0}>
            {copied}
          </pre>
          <div class="choices">
            <button
              type="button"
              class="main-button"
              onClick={() => {
                const about = handoff.isText
                  ? 'The text is copied.'
                  : 'The command is copied: run it in a terminal.';
                void app.copy(copied, about);
              }}
            >
              {handoff.isText ? 'Copy the text' : 'Copy the command'}
            </button>
          </div>
        </>
      )}
    </Dialog>
  );
}

function Outcome({ preview }: { preview: HandoffPreview }) {
  const { messages, tokens, losses, missing = [] } = preview;
  return (
    <>
      <p>
        {plural(messages, 'message')}, about {tokens.toLocaleString('en')} tokens.
        {losses.length === 0 && ' Nothing is lost.'}
      </p>
      {losses.length > 0 && (
        <ul aria-label="What is lost">
          {losses.map((loss) => (
            <li>{visible(loss.text)}</li>
          ))}
        </ul>
      )}
      {missing.map((program) => (
        <p class="handed-failure">
          {visible(program)} is not on the PATH of the daemon: install it, or choose another agent.
        </p>
      ))}
    </>
  );
}
