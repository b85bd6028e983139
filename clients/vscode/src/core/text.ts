// Short texts, and texts without control characters.

// The table equals the daemon's: `tests/it/unseen.rs` compares both.
const CONTROLS =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e-\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Replaces control characters, which a terminal or an editor would obey, by a mark. */
export function visible(text: string): string {
  return text.replace(CONTROLS, (char) => (/\s/.test(char) ? ' ' : '\ufffd'));
}

/** Returns `text` on one line, cut to `length` characters. */
export function shorten(text: string, length: number): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const characters = Array.from(line);
  return characters.length <= length ? line : `${characters.slice(0, length - 1).join('')}…`;
}

/** Converts ranges in code points of `text` to ranges in UTF-16 code units, which JavaScript uses. */
export function unitRanges(text: string, ranges: readonly [number, number][]): [number, number][] {
  const starts: number[] = [];
  let unit = 0;
  for (const character of text) {
    starts.push(unit);
    unit += character.length;
  }
  const at = (point: number) => starts[point] ?? text.length;
  return ranges.map(([from, to]) => [at(from), at(to)]);
}

/** Returns `1 entry` or `3 entries`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

/** The age of a time, in the same form in all clients (protocol.md §1.5). */
export function ago(time: string, now = Date.now()): string {
  const minutes = Math.max(0, Math.floor((now - Date.parse(time)) / 60_000));
  if (Number.isNaN(minutes)) return '';
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 7) return `${days}d`;
  return days < 365 ? `${Math.floor(days / 7)}w` : `${Math.floor(days / 365)}y`;
}
