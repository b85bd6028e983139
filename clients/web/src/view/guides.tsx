/** The lines of the tree, drawn from the prefix that the daemon gives each row. */

const CELLS = new Map([
  ['│', 'down'],
  ['├', 'fork'],
  ['└', 'end'],
]);

/** The kinds of cells of a prefix, three characters each: at most `most`, the last ones, and whether there were more. */
export function cellsOf(prefix: string, most: number): string[] {
  const drawn = prefix.replace(/^…\d+ *(?=[│├└ ]|$)/u, '');
  const cells: string[] = [];
  const chars = Array.from(drawn);
  for (let at = 0; at < chars.length; at += 3) cells.push(CELLS.get(chars[at] ?? '') ?? 'none');
  if (cells.length > most) return cells.slice(cells.length - most + 1);
  return cells;
}

/** Deep guides are cut from the left, and the number of missing steps stands there. */
export function Guides(props: { prefix: string; indent: number; most: number }) {
  if (props.prefix === '') return null;
  const cells = cellsOf(props.prefix, props.most);
  const missing = props.indent - cells.length;
  return (
    <span class="guides" aria-hidden="true">
      {missing > 0 && <i class="guide cut">{`…${missing}`}</i>}
      {cells.map((kind) => (
        <i class={`guide ${kind}`} />
      ))}
    </span>
  );
}
