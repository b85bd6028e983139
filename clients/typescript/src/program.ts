// Finds the daemon's program. Knows nothing of JSON-RPC.

import { createRequire } from 'node:module';

/** A program to start, and the places that were tried before it. */
export interface FoundProgram {
  command: string;
  tried: string[];
}

/**
 * The program of this name: the one that TREELINED_BIN names (only the daemon), the one of the package for this
 * platform, which npm installs with this one, else the name alone, which is looked up on the PATH.
 */
export function findProgram(
  name = 'treelined',
  env: NodeJS.ProcessEnv = process.env,
  resolve: (path: string) => string = createRequire(import.meta.url).resolve,
): FoundProgram {
  const isDaemon = name === 'treelined';
  if (isDaemon && env.TREELINED_BIN) {
    return { command: env.TREELINED_BIN, tried: ['TREELINED_BIN'] };
  }
  const tried = isDaemon ? ['TREELINED_BIN, which is not set'] : [];
  const platform = `@treelined/${process.platform}-${process.arch}`;
  try {
    return { command: resolve(`${platform}/bin/${name}`), tried };
  } catch {
    // There is none for this platform, or npm was told to omit optional packages.
    return { command: name, tried: [...tried, `the package ${platform}, which is not installed`] };
  }
}
