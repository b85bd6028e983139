/**
 * The fragment of the address: `#e=<entry>` in a file, and `#s=<session>&e=<entry>` or `#p=<file>&e=<entry>` with a
 * daemon.
 */

/**
 * The session of a live page, by its id or its file. A file outside of the session directory can be found only by its
 * path.
 */
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
      // A fragment that was cut inside a character cannot be decoded, and names nothing.
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
