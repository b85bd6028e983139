/** The icons of the page: strokes of one weight, in the colour of the text. */

const PATHS = {
  menu: 'M3 5h14M3 10h14M3 15h9',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12zM13.5 13.5 17 17',
  copy: 'M7 7V3.5h9.5V13H13M3.5 7H13v9.5H3.5z',
  link: 'M8.5 11.5a3.5 3.5 0 0 0 5 0l2.5-2.5a3.5 3.5 0 0 0-5-5L10 5M11.5 8.5a3.5 3.5 0 0 0-5 0L4 11a3.5 3.5 0 0 0 5 5l1-1',
  go: 'M4 10h12M11 5l5 5-5 5',
  label: 'M3.5 3.5h6l7 7-6 6-7-7zM7 7h.01',
  edit: 'M3.5 16.5v-3l9-9 3 3-9 9z',
  compare: 'M10 3v14M3.5 5H8M3.5 9H7M3.5 13H8M12 5h4.5M13 9h3.5M12 13h4.5',
  stats: 'M4 16.5V10M8 16.5V4M12 16.5V8M16 16.5v-4',
  leaf: 'M4 4h8M4 8h5M10 11v6M7 14l3 3 3-3M16 4v13',
  'previous-prompt': 'M5 11.5l5-5 5 5M6 15.5h8',
  'next-prompt': 'M5 8.5l5 5 5-5M6 4.5h8',
  help: 'M7.5 7.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M10 14.5h.01M10 18a8 8 0 1 0 0-16 8 8 0 0 0 0 16z',
  close: 'M5 5l10 10M15 5 5 15',
  undo: 'M4 8h8a4 4 0 0 1 0 8H8M4 8l3.5-3.5M4 8l3.5 3.5',
  redo: 'M16 8H8a4 4 0 0 0 0 8h4M16 8l-3.5-3.5M16 8l-3.5 3.5',
  list: 'M3.5 5.5h13M3.5 10h13M3.5 14.5h13',
  compact: 'M4 4h12M4 16h12M10 6v3M8 7.5l2 2 2-2M10 14v-3M8 12.5l2-2 2 2',
  export: 'M10 13V3M6 7l4-4 4 4M4 12v4.5h12V12',
  command: 'M4 6l4 4-4 4M10 14h6',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface ButtonProps {
  icon: IconName;
  name: string;
  run: () => void;
  hint?: string;
  text?: string;
  disabled?: boolean;
}

/** A button with an icon. Its name is shown as a hint. */
export function IconButton({ icon, name, run, hint, text, disabled }: ButtonProps) {
  const title = hint === undefined ? name : `${name} (${hint})`;
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={name}
      title={title}
      onClick={run}
      disabled={disabled ?? false}
    >
      <Icon name={icon} />
      {text !== undefined && <span>{text}</span>}
    </button>
  );
}
