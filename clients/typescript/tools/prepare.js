// Builds dist/, for `npm install` of this folder and for `npm pack`. When another package installs this folder, npm
// does not install the build tools, so this script installs them first. It changes nothing if nothing is out of date, so
// checks of several packages that need this one may run at the same time.

import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('..', import.meta.url));

// npm sets these variables for the other package, so they are removed.
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(config_(local_|global_)?prefix|package_)/i.test(name),
  ),
);

const run = (...args) => execFileSync('npm', args, { cwd: folder, env, stdio: 'inherit' });

const written = (path) =>
  statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0;

// npm writes this file at the end of an installation.
if (written('../node_modules/.package-lock.json') < written('../package-lock.json')) {
  run('ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error');
}
run('run', '--silent', 'build');
