/** Formats costs for people. */

import type { Costs } from '../wire.ts';

/** Is shown if the cost is not known. */
export const UNKNOWN = '–';

/** `1.40`, `~1.40` if a part is estimated, `1.40 + ?` if a part is unknown. */
export function money(costs: Costs | undefined): string {
  if (!costs) return UNKNOWN;
  const { recorded, estimated, unknownAnswers } = costs;
  if (recorded === null && estimated === null) return unknownAnswers > 0 ? 'unknown' : UNKNOWN;
  const known = (recorded ?? 0) + (estimated ?? 0);
  const amount = known > 0 && known < 0.01 ? '<0.01' : known.toFixed(2);
  return `${estimated === null ? '' : '~'}${amount}${unknownAnswers > 0 ? ' + ?' : ''}`;
}
