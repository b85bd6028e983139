/** Makes texts of sessions fit for one line. */

// Marks of writing direction would change the order of the text around them, and control characters are invisible.
// The table equals the daemon's: `tests/it/unseen.rs` compares both.
const CONTROLS =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e-\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Replaces control characters by a mark. */
export function visible(text: string): string {
  return text.replace(CONTROLS, (char) => (/\s/.test(char) ? ' ' : '\ufffd'));
}

export function shorten(text: string, most: number): string {
  const chars = Array.from(text.slice(0, most * 2 + 2));
  return chars.length > most ? `${chars.slice(0, most - 1).join('')}…` : chars.join('');
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}
