/** Sizes that the style sheets use too. */

/** The height of a row of the tree, in pixels. */
export const ROW = 26;

/** The width of one level of the guides, in pixels. */
export const GUIDE = 12;
