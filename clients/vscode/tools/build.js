// Bundles the extension into dist/extension.cjs. If the page was built, copies it from clients/web, or from the
// folder TREELINED_PAGE.

import { cp, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const isProduction = process.argv.includes('--production');

await rm(path('../dist'), { recursive: true, force: true });
await build({
  entryPoints: [path('../src/extension.ts')],
  outfile: path('../dist/extension.cjs'),
  bundle: true,
  platform: 'node',
  format: 'cjs',
  // The version of Node in the oldest VS Code that package.json allows.
  target: 'node20',
  external: ['vscode'],
  minify: isProduction,
  sourcemap: !isProduction,
  legalComments: 'none',
  logLevel: 'warning',
});
const page = process.env.TREELINED_PAGE ?? path('../../web/dist');
if (existsSync(`${page}/page.js`)) {
  for (const name of ['page.js', 'page.css'])
    await cp(`${page}/${name}`, path(`../dist/page/${name}`));
  await cp(path('../src/webview/socket.js'), path('../dist/page/socket.js'));
}
