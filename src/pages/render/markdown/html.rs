//! Writes the events of the parser as HTML. Only this file writes markup, and all of it is from constants.

use super::link;
use super::part::{Part, push_escaped};
use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Tag};

/// The most elements within each other. Deeper elements are left out, but their content stays.
const MOST_OPEN: usize = 64;
/// The most levels of elements within a table. Of all elements with fixed inner elements, a table has the most levels.
const FIXED_DEPTH: usize = 4;
/// The most characters of the name of a language.
const LANGUAGE_CHARS: usize = 32;

/// The end tag of an open element. [`LEFT_OUT`] and [`LEFT_OUT_LINK`] mark elements that are not written.
type EndTag = &'static str;

/// Marks an element that was left out.
const LEFT_OUT: EndTag = "";
/// Marks a link that was left out. The elements in the link are written.
const LEFT_OUT_LINK: EndTag = "left out";
const LINK_END: EndTag = "</a>";
/// The end of the start tag of every link.
const LINK_START_END: &str = "\" rel=\"noopener noreferrer\">";

/// Writes the parts of a text: HTML and code.
pub(super) struct HtmlWriter {
    parts: Vec<Part>,
    html: String,
    open: Vec<EndTag>,
    /// The number of open elements that were left out. All elements within them are left out too: for example, a row
    /// makes no sense without its table.
    left_out: usize,
    /// Whether code outside of lists and quotes becomes its own part.
    splits: bool,
    /// The language and the text of the code that is being read, if it becomes its own part.
    code: Option<(Option<String>, String)>,
    /// The raw HTML that is being read. It is shown as text.
    raw_html: Option<String>,
    /// The number of open links and images. Of links and images within each other, only the outermost becomes a link.
    links: usize,
    table: TableState,
    /// The number of bytes in the finished parts.
    written: usize,
}

/// The current position in a table.
#[derive(Default)]
struct TableState {
    alignments: Vec<Alignment>,
    is_head: bool,
    cell: usize,
}

impl HtmlWriter {
    /// A writer that makes one part.
    pub(super) fn whole() -> Self {
        Self {
            parts: Vec::new(),
            html: String::new(),
            open: Vec::new(),
            left_out: 0,
            splits: false,
            code: None,
            raw_html: None,
            links: 0,
            table: TableState::default(),
            written: 0,
        }
    }

    /// A writer that makes code outside of lists and quotes its own part.
    pub(super) fn with_parts() -> Self {
        Self {
            splits: true,
            ..Self::whole()
        }
    }

    /// The number of bytes written so far.
    pub(super) fn bytes(&self) -> usize {
        self.written + self.html.len()
    }

    pub(super) fn finish(mut self) -> Vec<Part> {
        while !self.open.is_empty() {
            self.end();
        }
        self.end_html();
        self.parts
    }

    pub(super) fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(_) => self.end(),
            Event::Text(text) | Event::InlineHtml(text) => self.text(&text),
            // These are switched off in the parser, so it does not report them. If it did, they would be shown as text.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text);
            }
            Event::Html(html) => match &mut self.raw_html {
                Some(raw) => raw.push_str(&html),
                None => self.text(&html),
            },
            Event::Code(text) => {
                self.html.push_str("<code>");
                push_escaped(&mut self.html, &text);
                self.html.push_str("</code>");
            }
            // People and models expect a line break where they type one.
            Event::SoftBreak | Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(is_done) => {
                self.html.push_str(if is_done { "☑ " } else { "☐ " });
            }
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => {
                code.push_str(text);
                self.written += text.len();
            }
            None => push_escaped(&mut self.html, text),
        }
    }

    /// Opens an element, unless too many elements are open.
    fn element(&mut self, start: &str, end: EndTag) {
        self.element_within(start, end, MOST_OPEN);
    }

    /// Like [`Self::element`], for an element with fixed inner elements. Leaves room for the inner elements.
    fn container(&mut self, start: &str, end: EndTag) {
        self.element_within(start, end, MOST_OPEN - FIXED_DEPTH);
    }

    fn element_within(&mut self, start: &str, end: EndTag, most: usize) {
        if self.open.len() < most && self.left_out == 0 {
            self.html.push_str(start);
            self.open.push(end);
        } else {
            self.leave_out();
        }
    }

    /// Leaves out an element; its content stays.
    fn leave_out(&mut self) {
        self.left_out += 1;
        self.open.push(LEFT_OUT);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.element("<p>", "</p>"),
            Tag::Heading { level, .. } => {
                let (start, end) = heading(level);
                self.element(start, end);
            }
            Tag::BlockQuote(_) => self.container("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(kind) => self.start_code(&kind),
            Tag::HtmlBlock => {
                self.raw_html = Some(String::new());
                self.element("<p>", "</p>");
            }
            Tag::List(None) => self.container("<ul>", "</ul>"),
            Tag::List(Some(1)) => self.container("<ol>", "</ol>"),
            Tag::List(Some(first)) => {
                self.container(&format!("<ol start=\"{first}\">"), "</ol>");
            }
            Tag::Item => self.element("<li>", "</li>"),
            Tag::Table(alignments) => {
                self.table = TableState {
                    alignments,
                    ..TableState::default()
                };
                self.container("<table>", "</tbody></table>");
            }
            Tag::TableHead => {
                self.table.is_head = true;
                self.table.cell = 0;
                self.element("<thead><tr>", "</tr></thead><tbody>");
            }
            Tag::TableRow => {
                self.table.is_head = false;
                self.table.cell = 0;
                self.element("<tr>", "</tr>");
            }
            Tag::TableCell => self.start_cell(),
            Tag::Emphasis => self.element("<em>", "</em>"),
            Tag::Strong => self.element("<strong>", "</strong>"),
            Tag::Strikethrough => self.element("<del>", "</del>"),
            Tag::Link {
                link_type,
                dest_url,
                title,
                ..
            } => self.start_link(link_type, &dest_url, &title),
            Tag::Image {
                dest_url, title, ..
            } => self.start_link(LinkType::Inline, &dest_url, &title),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.leave_out(),
        }
    }

    fn end(&mut self) {
        if let Some(raw) = self.raw_html.take() {
            for (number, line) in raw.trim_end().lines().enumerate() {
                if number > 0 {
                    self.html.push_str("<br>");
                }
                push_escaped(&mut self.html, line);
            }
        }
        if let Some((language, text)) = self.code.take() {
            self.parts.push(Part::Code { language, text });
        }
        let end = self.open.pop().unwrap_or_default();
        match end {
            LEFT_OUT => self.left_out = self.left_out.saturating_sub(1),
            LEFT_OUT_LINK => self.links = self.links.saturating_sub(1),
            LINK_END => {
                self.links = self.links.saturating_sub(1);
                if self.html.ends_with(LINK_START_END) {
                    // A link without text would be invisible.
                    self.html.push_str("link");
                }
                self.html.push_str(end);
            }
            end => self.html.push_str(end),
        }
    }

    fn start_code(&mut self, kind: &CodeBlockKind<'_>) {
        let language = match kind {
            CodeBlockKind::Fenced(info) => language(info),
            CodeBlockKind::Indented => None,
        };
        if self.splits && self.open.is_empty() {
            self.end_html();
            self.code = Some((language, String::new()));
            return self.leave_out();
        }
        match language {
            Some(language) => self.container(
                &format!("<pre><code class=\"language-{language}\">"),
                "</code></pre>",
            ),
            None => self.container("<pre><code>", "</code></pre>"),
        }
    }

    fn start_cell(&mut self) {
        let alignment = self.table.alignments.get(self.table.cell);
        self.table.cell += 1;
        let end = if self.table.is_head { "</th>" } else { "</td>" };
        let start = match (self.table.is_head, alignment) {
            (true, Some(Alignment::Left)) => "<th class=\"left\">",
            (true, Some(Alignment::Center)) => "<th class=\"center\">",
            (true, Some(Alignment::Right)) => "<th class=\"right\">",
            (true, _) => "<th>",
            (false, Some(Alignment::Left)) => "<td class=\"left\">",
            (false, Some(Alignment::Center)) => "<td class=\"center\">",
            (false, Some(Alignment::Right)) => "<td class=\"right\">",
            (false, _) => "<td>",
        };
        self.element(start, end);
    }

    /// Opens a link. An image becomes a link to the image, so that the page loads nothing.
    fn start_link(&mut self, link_type: LinkType, destination: &CowStr<'_>, title: &str) {
        self.links += 1;
        let address = match link_type {
            LinkType::Email => link::address(&format!("mailto:{destination}")),
            _ => link::address(destination),
        };
        let is_link = self.links == 1 && self.open.len() < MOST_OPEN;
        let Some(address) = address.filter(|_| is_link) else {
            self.open.push(LEFT_OUT_LINK);
            return;
        };
        self.html.push_str("<a href=\"");
        push_escaped(&mut self.html, &address);
        if !title.is_empty() {
            self.html.push_str("\" title=\"");
            push_escaped(&mut self.html, title);
        }
        self.html.push_str(LINK_START_END);
        self.open.push(LINK_END);
    }

    fn end_html(&mut self) {
        if !self.html.is_empty() {
            self.written += self.html.len();
            let html = std::mem::take(&mut self.html);
            self.parts.push(Part::Html(html));
        }
    }
}

fn heading(level: HeadingLevel) -> (&'static str, EndTag) {
    match level {
        HeadingLevel::H1 => ("<h1>", "</h1>"),
        HeadingLevel::H2 => ("<h2>", "</h2>"),
        HeadingLevel::H3 => ("<h3>", "</h3>"),
        HeadingLevel::H4 => ("<h4>", "</h4>"),
        HeadingLevel::H5 => ("<h5>", "</h5>"),
        HeadingLevel::H6 => ("<h6>", "</h6>"),
    }
}

/// The language of fenced code: the first word after the fence, in lower case. `None` if the word has characters that
/// names of languages do not have.
pub(in crate::render) fn language(info: &str) -> Option<String> {
    let word = info.split([' ', '\t', ',', '{']).next()?;
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"+#._-".contains(&byte);
    let is_name = (1..=LANGUAGE_CHARS).contains(&word.len()) && word.bytes().all(is_known);
    is_name.then(|| word.to_ascii_lowercase())
}
