// The page of `clients/web` as the HTML of a webview.

export interface PageAssets {
  script: string;
  style: string;
}

/** The policy of a webview that runs one script and loads nothing. */
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

/** Returns the page with its script and style inside. */
export function pageHtml({ script, style }: PageAssets, nonce: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(nonce)}">
<title>treelined</title>
<style nonce="${nonce}">${inTag(style, 'style')}</style>
<body>
<script nonce="${nonce}">${inTag(script, 'script')}</script>
</body>
</html>`;
}

/** Says that this build has no page, and what to do. */
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

/** Keeps text from ending its element. */
function inTag(text: string, tag: string): string {
  return text.replace(new RegExp(`</(?=${tag})`, 'gi'), '<\\/');
}
