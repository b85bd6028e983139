/** Marks the matches of a search in the text, without changing the elements of the text. */

import { marksOf, type Query } from '../text/query.ts';

const MOST = 1000;

let marked: Query | undefined;

export function markTexts(root: Element, query: Query | undefined): void {
  if (!('highlights' in CSS)) return;
  if (!query) {
    if (marked) CSS.highlights.delete('found');
    marked = undefined;
    return;
  }
  marked = query;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < MOST) {
    const node = walker.currentNode;
    const text = node.nodeValue ?? '';
    if (text.trim() === '') continue;
    for (const [from, to] of marksOf(query, text)) {
      const range = new Range();
      range.setStart(node, from);
      range.setEnd(node, to);
      ranges.push(range);
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges));
}
