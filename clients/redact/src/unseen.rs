//! Characters that people do not see. This is the only table of these characters (protocol.md §1.5). Every program that
//! shows or stores the text of a session uses this table, and tables in other languages are tested against it.

/// Whether a terminal, an editor or a browser would obey `char` instead of showing it. Such characters are the controls
/// C0, DEL and C1, separators of lines and paragraphs, marks for the direction of writing, interlinear annotations, and
/// tags.
#[inline]
pub const fn is_control(char: char) -> bool {
    matches!(
        char,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Whether `char` is invisible, so that text for a model can be hidden from people with it. Such characters are
/// controls, with line feeds and tabs, and all of Unicode's property `Default_Ignorable_Code_Point`. Some of them shape
/// the characters beside them: joiners and variation selectors.
pub const fn is_unseen(char: char) -> bool {
    is_control(char)
        || matches!(
            char,
            '\u{ad}'
                | '\u{34f}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200d}'
                | '\u{2060}'..='\u{2065}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fff8}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0080}'..='\u{e0fff}'
        )
}
