/** The field in which a command is typed, and the commands that match. */

import { useState } from 'preact/hooks';
import type { App } from '../model/app.ts';
import type { Live } from '../model/live.ts';
import type { Command } from '../model/live-state.ts';
import { visible } from '../text/visible.ts';
import { Dialog } from './dialog.tsx';

/** The commands of the page. Other clients cannot register these names (protocol.md §12.1). */
export const OWN: Command[] = [
  { name: 'tree', description: 'to the leaf' },
  { name: 'branch', description: 'go to the selected entry' },
  { name: 'label', argumentHint: 'TEXT', description: 'label the selected entry' },
  { name: 'name-branch', argumentHint: 'NAME', description: 'name the selected branch' },
  { name: 'archive', description: 'archive the selected branch' },
  { name: 'unarchive', description: 'bring back the selected branch' },
  { name: 'show-archived', description: 'show or hide archived branches' },
  { name: 'pin', description: 'pin the session, or unpin it' },
  { name: 'archive-session', description: 'archive the session, or bring it back' },
  { name: 'export', description: 'write the session into a file' },
  { name: 'compact', argumentHint: 'FOCUS', description: 'compact the context' },
];

/** The name and the argument of a typed command. A slash before the name is ignored. */
export function partsOf(text: string): { name: string; args: string } {
  const typed = text.trimStart().replace(/^\//, '');
  const [, name = '', args = ''] = /^(\S*)\s*(.*)$/s.exec(typed) ?? [];
  return { name, args: args.trim() };
}

interface Props {
  app: App;
  live: Live;
  commands: Command[] | undefined;
  close: () => void;
}

export function CommandDialog({ app, live, commands, close }: Props) {
  const [text, setText] = useState('');
  const [selected, setSelected] = useState(0);
  const { name, args } = partsOf(text);
  const hasArgument = /^\s*\/?\S+\s/.test(text);
  const own = OWN.filter(({ name }) => name !== 'compact' || live.summarizes);
  const fitting = [...own, ...(commands ?? [])].filter((command) =>
    hasArgument ? command.name === name : command.name.startsWith(name),
  );
  const chosen = fitting.find((command) => command.name === name) ?? fitting[selected];
  const run = (command = chosen): void => {
    if (!command) return;
    close();
    if (!OWN.includes(command)) void live.moves.run(command.name, args);
    else if (command.name === 'tree') app.act('to-active');
    else if (command.name === 'branch') app.act('accept');
    else if (command.name === 'compact') void live.moves.compact(args);
    else if (command.name === 'export') app.act('export');
    else if (command.name === 'show-archived') live.branches.show();
    else if (command.name === 'pin') void live.sorting.pin();
    else if (command.name === 'archive-session') void live.sorting.archive();
    else {
      const row = app.session?.tree.row();
      if (!row) return;
      if (command.name === 'label') void live.moves.label(row.id, args);
      else if (command.name === 'archive') live.branches.archive(row);
      else if (command.name === 'unarchive') void live.branches.unarchive(row.id);
      else if (args === '') live.branches.askName(row);
      else void live.branches.name(row.id, args);
    }
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setSelected(Math.min(fitting.length - 1, selected + 1));
    else if (event.key === 'ArrowUp') setSelected(Math.max(0, selected - 1));
    else if (event.key === 'Tab' && chosen) setText(`${chosen.name} `);
    else if (event.key === 'Enter') run();
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Run a command" close={close}>
      <input
        class="command-line"
        autofocus
        aria-label="Command"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setSelected(0);
        }}
        onKeyDown={keys}
      />
      <ul class="commands">
        {fitting.map((command, at) => (
          <li>
            <button
              type="button"
              class={at === selected ? 'selected' : ''}
              onClick={() => run(command)}
            >
              <b>{visible(command.name)}</b>{' '}
              <span class="mono">{visible(command.argumentHint ?? '')}</span>
              <span class="quiet">
                {visible(command.description ?? '')}
                {command.by === undefined ? '' : ` (${visible(command.by)})`}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {commands === undefined && <p class="quiet">Asking for the commands of other clients…</p>}
    </Dialog>
  );
}
