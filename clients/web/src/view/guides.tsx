/** The lines of the tree, drawn from the prefix that the daemon gives each row. */

const CELLS = new Map([
  ['│', 'down'],
  ['├', 'fork'],
  ['└', 'end'],
]);

/** The kinds of cells of a prefix, three characters each. At most `most`, the last ones. */
export function cellsOf(prefix: string, most: number): string[] {
  const cells: string[] = [];
  const chars = Array.from(prefix);
  const start = chars[0] === '…' ? 1 : 0;
  for (let at = start; at < chars.length; at += 3) cells.push(CELLS.get(chars[at] ?? '') ?? 'none');
  if (cells.length > most) return ['cut', ...cells.slice(cells.length - most + 1)];
  return start > 0 ? ['cut', ...cells] : cells;
}

export function Guides(props: { prefix: string; most: number }) {
  if (props.prefix === '') return null;
  return (
    <span class="guides" aria-hidden="true">
      {cellsOf(props.prefix, props.most).map((kind) => (
        <i class={`guide ${kind}`} />
      ))}
    </span>
  );
}
