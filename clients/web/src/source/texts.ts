/** The text of blocks, for searching and copying. */

import type { Block } from '../wire.ts';
import { textOf } from '../text/markup.ts';

export function blockText(block: Block): string {
  switch (block.kind) {
    case 'html':
    case 'thinking':
      return textOf(block.html);
    case 'summary':
      return textOf(block.html);
    case 'code':
    case 'diff':
    case 'text':
      return block.text;
    case 'toolCall': {
      const inner = (block.blocks ?? []).map(blockText);
      return [block.name, block.argument ?? '', block.arguments, ...inner].join('\n');
    }
    default:
      return '';
  }
}
