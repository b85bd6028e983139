/** Sizes that the styles have too. */

/** The height of a row of the tree, in pixels. */
export const ROW = 26;
