// Builds the tests into build/ and runs them: node tools/test.js unit|browser [NAME]
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [kind = 'unit', name = ''] = process.argv.slice(2);
const folder = `${root}/tests/${kind}`;
const tests = readdirSync(folder).filter(
  (file) => file.endsWith('.test.ts') && file.includes(name),
);
rmSync(`${root}/build/${kind}`, { recursive: true, force: true });
await build({
  entryPoints: tests.map((file) => `${folder}/${file}`),
  outdir: `${root}/build/${kind}`,
  bundle: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  sourcemap: 'inline',
  outExtension: { '.js': '.mjs' },
  logLevel: 'warning',
});
const files = tests.map((file) => `${root}/build/${kind}/${file.replace(/\.ts$/, '.mjs')}`);
const run = spawnSync(
  process.execPath,
  ['--enable-source-maps', '--test', '--test-concurrency=2', '--test-timeout=600000', ...files],
  { stdio: 'inherit', cwd: root },
);
process.exit(run.status ?? 1);
