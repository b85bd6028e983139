/** Sizes that the styles have too. */

/** The height of a row of the tree, in pixels. */
export const ROW = 26;

/** The width of a step of the guides, in pixels. */
export const GUIDE = 12;
