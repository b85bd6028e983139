/** All keys, and a list of the parts that the export left out. */

import type { App } from '../model/app.ts';
import { BINDINGS } from '../model/keys.ts';
import { plural, visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

export function Help({ app }: { app: App }) {
  const bindings = BINDINGS.filter((binding) => !binding.live || app.live);
  return (
    <Dialog title="Keys" wide close={() => app.close()}>
      <dl class="keys">
        {bindings.map((binding) => (
          <div>
            <dt>
              {binding.keys.map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{binding.about}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">
        Words of a search may be anywhere in an entry; <code>"…"</code> is a phrase,{' '}
        <code>/…/</code> a regular expression.
      </p>
    </Dialog>
  );
}

export function Redactions({ app }: { app: App }) {
  const meta = app.file?.meta;
  const list = meta?.redactions ?? [];
  return (
    <Dialog title="What was replaced" close={() => app.close()}>
      {meta?.redacted === false ? (
        <p>
          Nothing: this file was made without redaction. Keys and tokens are in it as they were.
        </p>
      ) : list.length === 0 ? (
        <p>Nothing was found that looks like a key, a token or a password.</p>
      ) : (
        <ul class="redactions">
          {list.map((one) => (
            <li>
              <b>{visible(one.kind)}</b> {plural(one.count, 'time')}
              {one.entryIds?.slice(0, 20).map((id) => (
                <button
                  type="button"
                  class="quiet-button"
                  onClick={() => {
                    app.close();
                    void app.go(id);
                  }}
                >
                  {visible(id)}
                </button>
              ))}
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}
