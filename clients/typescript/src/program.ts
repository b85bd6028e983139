// Finds the program of the daemon.

import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The environment variable that names the program. */
const VARIABLE = 'TREELINED_BIN';

/** The name of the program. */
const PROGRAM = 'treelined';

/** The package with the programs for this platform. npm installs it together with this package. */
export const PLATFORM = `treelined-${process.platform}-${process.arch}`;

/** The program to start, and the places where it was searched for. */
export interface FoundProgram {
  command: string;
  tried: string[];
}

/**
 * Finds the program. If the caller or `TREELINED_BIN` names a program, this program is returned. Otherwise it is the
 * program of the installed platform package or, without this package, the one on the `PATH`.
 */
export function findProgram(
  named: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
): FoundProgram {
  if (named !== undefined) return { command: named, tried: [place(named, env)] };
  const variable = env[VARIABLE];
  if (variable) return { command: variable, tried: [`${place(variable, env)} (${VARIABLE})`] };
  const own = programOfPlatform(PROGRAM);
  if (own !== undefined) return { command: own, tried: [own] };
  const tried = [`${VARIABLE} (not set)`, `the package ${PLATFORM}`, place(PROGRAM, env)];
  return { command: PROGRAM, tried };
}

/** The path of a program in the platform package; undefined if this package is not installed. */
export function programOfPlatform(name: string): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve(`${PLATFORM}/package.json`);
    const path = join(dirname(manifest), 'bin', name);
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}

function place(command: string, env: NodeJS.ProcessEnv): string {
  return command.includes('/') ? command : `${command} on the PATH (${env.PATH ?? ''})`;
}
