// Makes the HTML of a webview from the page of `clients/web`.

export interface PageAssets {
  /** The script that runs before the page and connects it with the editor. */
  socket: string;
  script: string;
  style: string;
}

export interface PagePlace {
  /** A random value for this document. The policy requires it on scripts and styles. */
  nonce: string;
  sessionId: string;
  isDark: boolean;
}

/** The content security policy of a webview that runs one script and loads nothing. */
export function policy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    'img-src data: blob:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

/** Returns the page for a session, with its script and style inside. */
export function pageHtml({ socket, script, style }: PageAssets, place: PagePlace): string {
  const { nonce, sessionId, isDark } = place;
  const scheme = isDark ? 'dark' : 'light';
  // The colours follow the editor's theme, not the system. The replacement begins with a space, since a minified
  // style has none before the condition.
  const themed = style.replace(/\(prefers-color-scheme: ?(dark|light)\)/g, (_, name) =>
    name === scheme ? ' all' : ' not all',
  );
  const data = `data-session="${attribute(sessionId)}" data-is-dark="${isDark}"`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(nonce)}">
<title>treelined</title>
<style nonce="${nonce}">${inTag(themed, 'style')}
:root { color-scheme: ${scheme}; }
body { padding: 0; }</style>
</head>
<body>
<div id="app"></div>
<script nonce="${nonce}" ${data}>${inTag(socket, 'script')}</script>
<script nonce="${nonce}">${inTag(script, 'script')}</script>
</body>
</html>`;
}

/** The page that says that this build has no page, and what to do. */
export function missingPage(): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<title>treelined</title>
<body>
<h1>The page is not in this build</h1>
<p>Everything else works: the tree, entries and comparisons are in VS Code's own views.
A build of treelined with <code>clients/web</code> shows the page here.</p>
</body>
</html>`;
}

/** Escapes text so that it cannot end its element. */
function inTag(text: string, tag: string): string {
  return text.replace(new RegExp(`</(?=${tag})`, 'gi'), '<\\/');
}

function attribute(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
}
