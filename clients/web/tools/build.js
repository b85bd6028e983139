// Builds the page: dist/page.js and dist/page.css, which the daemon embeds.
//
//   node tools/build.js           writes dist/
//   node tools/build.js --check   fails if dist/ is not what the sources give
import { build } from 'esbuild';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The most bytes of script and style together, when compressed. */
const LIMIT = 150_000;

const common = {
  bundle: true,
  minify: true,
  write: false,
  charset: 'ascii',
  legalComments: 'none',
};
const [script, style] = await Promise.all([
  build({
    ...common,
    entryPoints: [`${root}/src/main.tsx`],
    format: 'iife',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
  }),
  build({ ...common, entryPoints: [`${root}/src/style/page.css`] }),
]);
const files = {
  // Characters outside of ASCII are escaped. They occur only in strings and patterns, where an escape means the same.
  'page.js': script.outputFiles[0].text
    .replace(/<(?=\/?script|\/style|!--)/gi, '\\x3c')
    .replace(/[^\n\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'page.css': style.outputFiles[0].text,
};
const size = gzipSync(files['page.js']).length + gzipSync(files['page.css']).length;
for (const [name, text] of Object.entries(files)) {
  // The daemon puts both into a document without changing them.
  if (/<\/(script|style)|<!--/i.test(text) || /[^\n\x20-\x7e]/.test(text)) {
    throw new Error(`${name} cannot be put into a document`);
  }
}
if (size > LIMIT) throw new Error(`the page has ${size} bytes compressed, more than ${LIMIT}`);
if (process.argv.includes('--check')) {
  const changed = Object.entries(files).filter(
    ([name, text]) => readFileSync(`${root}/dist/${name}`, 'utf8') !== text,
  );
  if (changed.length > 0) {
    process.exit(1);
  }
} else {
  mkdirSync(`${root}/dist`, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(`${root}/dist/${name}`, text);
}
console.log(`page: ${size} bytes compressed`);
