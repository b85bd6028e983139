/** Keys and their actions. They are the keys of the terminal client, except those that a browser uses itself. */

export type Action =
  | 'up'
  | 'down'
  | 'page-up'
  | 'page-down'
  | 'first'
  | 'last'
  | 'accept'
  | 'back'
  | 'search'
  | 'next-hit'
  | 'previous-hit'
  | 'fold-or-up'
  | 'unfold-or-down'
  | 'toggle-fold'
  | 'open-all'
  | 'previous-prompt'
  | 'next-prompt'
  | 'to-active'
  | 'to-news'
  | 'filter-default'
  | 'filter-no-tools'
  | 'filter-user-only'
  | 'filter-labeled-only'
  | 'filter-all'
  | 'next-filter'
  | 'label'
  | 'undo'
  | 'redo'
  | 'copy'
  | 'compose'
  | 'rewind'
  | 'continue-elsewhere'
  | 'mark'
  | 'compare'
  | 'name-branch'
  | 'archive'
  | 'show-archived'
  | 'candidates'
  | 'aside'
  | 'keep-aside'
  | 'family'
  | 'tags'
  | 'pin'
  | 'stats'
  | 'toggle-tools'
  | 'toggle-thinking'
  | 'toggle-path'
  | 'focus-path'
  | 'sessions'
  | 'search-all'
  | 'command'
  | 'compact'
  | 'export'
  | 'answer'
  | 'reconnect'
  | 'help';

export interface Binding {
  action: Action;
  keys: readonly string[];
  about: string;
  /** True if the action needs a daemon. */
  live?: true;
}

export const BINDINGS: readonly Binding[] = [
  { action: 'up', keys: ['up', 'k'], about: 'up' },
  { action: 'down', keys: ['down', 'j'], about: 'down' },
  { action: 'page-up', keys: ['pageup', 'left'], about: 'a page up' },
  { action: 'page-down', keys: ['pagedown', 'right'], about: 'a page down' },
  { action: 'first', keys: ['home', 'g'], about: 'to the start' },
  { action: 'last', keys: ['end', 'G'], about: 'to the end' },
  { action: 'accept', keys: ['enter'], about: 'go here; in a file, read here' },
  { action: 'back', keys: ['esc'], about: 'clear the search, then go back' },
  { action: 'search', keys: ['/'], about: 'search' },
  { action: 'next-hit', keys: ['n', 'f3'], about: 'the next hit' },
  { action: 'previous-hit', keys: ['N', 'shift+f3'], about: 'the previous hit' },
  {
    action: 'fold-or-up',
    keys: ['ctrl+left', 'alt+left', 'h'],
    about: 'close the branch, or go to its start',
  },
  {
    action: 'unfold-or-down',
    keys: ['ctrl+right', 'alt+right', 'l'],
    about: 'open the branch, or go to the next one',
  },
  { action: 'toggle-fold', keys: ['space'], about: 'open or close a folded row or a branch' },
  { action: 'open-all', keys: ['*'], about: 'open or close all branches' },
  { action: 'previous-prompt', keys: ['['], about: 'to the previous user message' },
  { action: 'next-prompt', keys: [']'], about: 'to the next user message' },
  { action: 'to-active', keys: ['A', 'a'], about: 'to the leaf' },
  { action: 'filter-default', keys: ['1', 'ctrl+d'], about: 'show the conversation' },
  { action: 'filter-no-tools', keys: ['2'], about: 'hide tool results' },
  { action: 'filter-user-only', keys: ['3', 'ctrl+u'], about: 'only user messages' },
  { action: 'filter-labeled-only', keys: ['4'], about: 'only labelled entries' },
  { action: 'filter-all', keys: ['5', 'ctrl+a'], about: 'show every entry' },
  { action: 'next-filter', keys: ['ctrl+o'], about: 'the next filter' },
  { action: 'copy', keys: ['y'], about: 'copy the text of the entry' },
  { action: 'mark', keys: ['M', 'm'], about: 'mark the entry for comparing' },
  { action: 'compare', keys: ['C', 'c'], about: 'compare the marked entries' },
  { action: 'stats', keys: ['t'], about: 'time, tokens and cost' },
  { action: 'toggle-tools', keys: ['V', 'v'], about: 'open or close all tool calls' },
  { action: 'toggle-thinking', keys: ['Z', 'z'], about: 'open or close all thinking' },
  { action: 'toggle-path', keys: ['F'], about: 'hide or show the tree' },
  { action: 'focus-path', keys: ['tab'], about: 'to the text and back' },
  { action: 'label', keys: ['L'], about: 'label the entry', live: true },
  { action: 'to-news', keys: ['O', 'o'], about: 'to newer entries on another branch', live: true },
  { action: 'undo', keys: ['u'], about: 'undo the last move', live: true },
  { action: 'redo', keys: ['ctrl+r', 'U'], about: 'redo the move', live: true },
  { action: 'compose', keys: ['I', 'i'], about: 'write a message here', live: true },
  { action: 'rewind', keys: ['E', 'e'], about: 'edit a user message again', live: true },
  {
    action: 'continue-elsewhere',
    keys: ['H'],
    about: 'continue in another tool',
    live: true,
  },
  { action: 'name-branch', keys: ['f2', '@'], about: 'name this branch', live: true },
  {
    action: 'archive',
    keys: ['D', 'd'],
    about: 'archive this branch, or bring it back',
    live: true,
  },
  {
    action: 'show-archived',
    keys: ['.'],
    about: 'show or hide archived branches',
    live: true,
  },
  {
    action: 'candidates',
    keys: ['J'],
    about: 'choose between the answers to one question',
    live: true,
  },
  { action: 'aside', keys: [','], about: 'ask a side question, on its own branch', live: true },
  {
    action: 'keep-aside',
    keys: [';'],
    about: 'copy a side question to the leaf',
    live: true,
  },
  { action: 'family', keys: ['Y'], about: 'sessions related to this one', live: true },
  { action: 'tags', keys: ['#'], about: 'change the tags of the session', live: true },
  { action: 'pin', keys: ['!'], about: 'pin the session, or unpin it', live: true },
  { action: 'compact', keys: ['K'], about: 'compact the context', live: true },
  { action: 'export', keys: ['x', 'X'], about: 'write the session into a file', live: true },
  { action: 'sessions', keys: ['S', 's'], about: 'the list of sessions', live: true },
  {
    action: 'search-all',
    keys: ['ctrl+f'],
    about: 'search the text of all sessions',
    live: true,
  },
  { action: 'command', keys: [':'], about: 'run a command', live: true },
  { action: 'answer', keys: ['ctrl+q'], about: 'open the waiting question', live: true },
  { action: 'reconnect', keys: ['R', 'r'], about: 'connect again', live: true },
  { action: 'help', keys: ['?', 'f1'], about: 'all keys' },
];

const NAMES = new Map([
  ['ArrowUp', 'up'],
  ['ArrowDown', 'down'],
  ['ArrowLeft', 'left'],
  ['ArrowRight', 'right'],
  ['PageUp', 'pageup'],
  ['PageDown', 'pagedown'],
  ['Home', 'home'],
  ['End', 'end'],
  ['Enter', 'enter'],
  ['Escape', 'esc'],
  ['Tab', 'tab'],
  [' ', 'space'],
  ['F1', 'f1'],
  ['F2', 'f2'],
  ['F3', 'f3'],
]);

export interface Key {
  key: string;
  ctrlKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
  metaKey: boolean;
}

/** The name of a key in the table. The name of a letter includes shift: `L`, not shift and `l`. */
export function keyName(event: Key): string | undefined {
  if (event.metaKey) return undefined;
  const single = Array.from(event.key).length === 1;
  const base = NAMES.get(event.key) ?? (single ? event.key : undefined);
  if (base === undefined) return undefined;
  const shift = event.shiftKey && NAMES.has(event.key) ? 'shift+' : '';
  const letter = event.ctrlKey && single ? base.toLowerCase() : base;
  return `${event.ctrlKey ? 'ctrl+' : ''}${event.altKey ? 'alt+' : ''}${shift}${letter}`;
}

const BY_KEY = new Map(
  BINDINGS.flatMap((binding) => binding.keys.map((key) => [key, binding] as const)),
);

export function bindingOf(event: Key, live: boolean): Binding | undefined {
  const name = keyName(event);
  const binding = name === undefined ? undefined : BY_KEY.get(name);
  return binding?.live && !live ? undefined : binding;
}

/** The first key of an action, which hints show. */
export function hint(action: Action): string {
  return BINDINGS.find((binding) => binding.action === action)?.keys[0] ?? '';
}

/** The letter or digit that a key types; undefined if a modifier makes it a command. */
export function typed(event: Key): string | undefined {
  const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
  return plain && /^[\p{L}\p{N}"]$/u.test(event.key) ? event.key : undefined;
}
