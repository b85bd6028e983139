/**
 * The only module that turns text into markup. The daemon makes the HTML, with a few elements and attributes. The
 * page parses it before it is used: a string with any other markup is shown as text.
 */

const PLAIN = new Set(
  'p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del a table thead tbody tr th td hr br'.split(
    ' ',
  ),
);

const TAG = /<(\/?)([a-z][a-z0-9]*)((?: [a-z]+="[^"<>]*")*) ?\/?>/y;
const TEXT = /[^<]+/y;
const ATTRIBUTE = / ([a-z]+)="([^"<>]*)"/g;
const LINK = /^(?:https?:\/\/|mailto:)[^\u0000-\u0020\u007f]*$/i;

/** Whether a string is HTML that the daemon can have made. */
export function isWriterHtml(html: string): boolean {
  let at = 0;
  while (at < html.length) {
    const pattern = html[at] === '<' ? TAG : TEXT;
    pattern.lastIndex = at;
    const match = pattern.exec(html);
    if (!match) return false;
    at = pattern.lastIndex;
    if (pattern === TAG && !isWriterTag(match)) return false;
  }
  return true;
}

function isWriterTag([, closing, name = '', attributes = '']: RegExpExecArray): boolean {
  if (!PLAIN.has(name)) return false;
  if (closing !== '') return attributes === '';
  for (const [, attribute = '', value = ''] of attributes.matchAll(ATTRIBUTE)) {
    if (!isWriterAttribute(name, attribute, decodeEntities(value))) return false;
  }
  return true;
}

function isWriterAttribute(tag: string, name: string, value: string): boolean {
  switch (`${tag} ${name}`) {
    case 'a href':
      return LINK.test(value);
    case 'a rel':
      return value.split(' ').every((word) => /^(noopener|noreferrer|nofollow)$/.test(word));
    case 'a title':
      return true;
    case 'ol start':
      return /^\d{1,9}$/.test(value);
    case 'code class':
      return /^language-[a-z0-9+#._-]{1,32}$/.test(value);
    case 'td class':
    case 'th class':
      return /^(left|right|center)$/.test(value);
    default:
      return false;
  }
}

const NAMED: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Decodes the few entities that the daemon uses. Any other entity makes an address invalid. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));?/gi, (_, dec, hex, name) => {
    const named = Object.hasOwn(NAMED, String(name)) ? NAMED[String(name)] : undefined;
    if (named !== undefined) return named;
    const code = dec ? Number(dec) : parseInt(String(hex), 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '\u0000';
  });
}

/** The text of the daemon's HTML, for searching and copying. */
export function textOf(html: string): string {
  return decodeEntities(html.replace(/<[^>]*>/g, ' '));
}

interface Trusted {
  createHTML(html: string): unknown;
}

interface Factory {
  createPolicy(name: string, rules: { createHTML: (html: string) => string }): Trusted;
}

let policy: Trusted | undefined;

function trusted(): Trusted {
  if (policy) return policy;
  const rules = {
    createHTML(html: string): string {
      if (!isWriterHtml(html)) throw new TypeError('not HTML of the daemon');
      return html;
    },
  };
  const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
  return (policy = factory ? factory.createPolicy('treelined', rules) : rules);
}

/** Fills an element with the daemon's HTML, or shows the string as text if it is not such HTML. */
export function setMarkup(element: Element, html: string): void {
  if (!isWriterHtml(html)) {
    element.textContent = html;
    return;
  }
  element.innerHTML = trusted().createHTML(html) as string;
  for (const link of element.querySelectorAll('a')) {
    link.setAttribute('rel', 'noopener noreferrer');
    link.setAttribute('target', '_blank');
  }
}
