/** The fragment of the address: `#e=<entry>`, and live `#s=<session>&e=<entry>` or `#p=<file>&e=<entry>`. */

/** The session of a live page, by its id or by its file: a daemon finds files outside of its directory by their path only. */
export interface SessionRoute {
  session?: string;
  path?: string;
}

export interface Route extends SessionRoute {
  entry?: string;
  token?: string;
}

const NAMES = { e: 'entry', s: 'session', p: 'path', t: 'token' } as const;

export function parseRoute(fragment: string): Route {
  const route: Route = {};
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const equals = part.indexOf('=');
    const name = part.slice(0, equals);
    if (!Object.hasOwn(NAMES, name)) continue;
    try {
      route[NAMES[name as keyof typeof NAMES]] = decodeURIComponent(part.slice(equals + 1));
    } catch {
      // A fragment that is cut in the middle of a character names nothing.
    }
  }
  return route;
}

export function formatRoute(route: Route): string {
  const parts: string[] = [];
  if (route.path !== undefined) parts.push(`p=${encodeURIComponent(route.path)}`);
  else if (route.session !== undefined) parts.push(`s=${encodeURIComponent(route.session)}`);
  if (route.entry !== undefined) parts.push(`e=${encodeURIComponent(route.entry)}`);
  return parts.length > 0 ? `#${parts.join('&')}` : '';
}
