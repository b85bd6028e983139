/** Formats times for people. The times of sessions may be any text. */

export function parseTime(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

function two(number: number): string {
  return String(number).padStart(2, '0');
}

/** The local time `14:05`, with the date if the day differs from the day of `previous`. */
export function clock(text: string | undefined, previous?: string): string {
  const time = parseTime(text);
  if (!time) return '';
  const hours = `${two(time.getHours())}:${two(time.getMinutes())}`;
  const before = parseTime(previous);
  if (before?.toDateString() === time.toDateString()) return hours;
  return `${day(time)} ${hours}`;
}

export function day(time: Date): string {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

/** The age of a time: `now`, `5m`, `3h`, `2d`, `4w`, `1y` (protocol.md §1.5). */
export function age(text: string | undefined, now: number): string {
  const time = parseTime(text);
  if (!time) return '';
  const minutes = Math.max(0, (now - time.getTime()) / 60_000);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${Math.floor(minutes)}m`;
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)}h`;
  const days = minutes / 60 / 24;
  if (days < 7) return `${Math.floor(days)}d`;
  return days < 365 ? `${Math.floor(days / 7)}w` : `${Math.floor(days / 365)}y`;
}

/** A duration such as `12 s`, `4 min` or `2 h 05 min`. */
export function duration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}
