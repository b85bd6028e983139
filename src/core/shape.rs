//! The members of messages and of content. One table serves both the check of appended entries
//! ([`crate::flow::validate`]) and the schema (in the crate `wire`), so that the check and the schema agree.
//!
//! Members and roles that are not in the table are allowed and kept.

use crate::bytes::part;
use crate::json::{self, Elements, Malformed, Members};
use crate::suggest;
use std::fmt::Write;
use std::sync::OnceLock;

/// The type of a member's value.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Text,
    Number,
    Flag,
    /// A number or a string.
    Time,
    Any,
    Object(&'static Record),
    /// An array of [`BLOCKS`].
    Blocks,
    TextOrBlocks,
}

/// A member of an object.
#[derive(Debug)]
pub struct KnownMember {
    pub name: &'static str,
    pub shape: Shape,
    /// A member that is not required may also be null.
    pub is_required: bool,
    pub description: &'static str,
}

/// An object with known members.
#[derive(Debug)]
pub struct Record {
    /// The value of the member that identifies the object; empty if there is none.
    pub tag: &'static str,
    /// Its name in the schema.
    pub name: &'static str,
    pub description: &'static str,
    pub members: &'static [KnownMember],
}

macro_rules! record {
    ($tag:literal $name:literal $description:literal {
        $($member:ident $shape:expr, $need:ident, $text:literal;)*
    }) => {
        Record {
            tag: $tag,
            name: $name,
            description: $description,
            members: &[$(KnownMember {
                name: stringify!($member),
                shape: $shape,
                is_required: record!(@$need),
                description: $text,
            }),*],
        }
    };
    (@required) => { true };
    (@optional) => { false };
}

/// The messages with a known role.
pub const ROLES: &[Record] = &[
    record! { "user" "UserMessage" "A message of the user." {
        content Shape::TextOrBlocks, required, "A text, or content blocks.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
    record! { "assistant" "AssistantMessage" "An answer of the model." {
        content Shape::Blocks, required, "The text, thinking and tool calls.";
        api Shape::Text, optional, "The provider's programming interface.";
        provider Shape::Text, optional, "The provider that serves the model.";
        model Shape::Text, optional, "The provider's name for the model.";
        usage Shape::Object(&USAGE), optional, "The tokens that the answer used.";
        stopReason Shape::Text, optional, "Why the answer ended: `stop`, `length`, `toolUse`, `error`, `aborted`, or another reason.";
        errorMessage Shape::Text, optional, "Why the answer failed. Present if `stopReason` is `error`.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
    record! { "toolResult" "ToolResultMessage" "The result of a tool call." {
        toolCallId Shape::Text, required, "The `id` of the tool call that it answers.";
        toolName Shape::Text, optional, "The name of the tool.";
        content Shape::Blocks, required, "The text and images of the result.";
        details Shape::Any, optional, "Any JSON. The model does not see it.";
        isError Shape::Flag, optional, "True if the tool failed.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
    record! { "bashExecution" "BashExecutionMessage" "A command that the user ran." {
        command Shape::Text, required, "The command.";
        output Shape::Text, required, "The output of the command.";
        exitCode Shape::Number, optional, "The exit code. Absent if the command did not exit.";
        cancelled Shape::Flag, optional, "True if the user cancelled the command.";
        truncated Shape::Flag, optional, "True if `output` is only a part.";
        fullOutputPath Shape::Text, optional, "The path of a file with the whole output.";
        excludeFromContext Shape::Flag, optional, "True if the model does not see the message.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
    record! { "custom" "CustomMessage" "A message of a plugin." {
        customType Shape::Text, optional, "The type, in the plugin's own terms.";
        content Shape::TextOrBlocks, required, "A text, or content blocks.";
        display Shape::Flag, optional, "Whether to show the message to the user.";
        details Shape::Any, optional, "Any JSON. The model does not see it.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
    record! { "branchSummary" "BranchSummaryMessage" "The summary of a branch that the leaf has left." {
        summary Shape::Text, required, "The text of the summary.";
        fromId Shape::Text, optional, "The id of the leaf that was left; `root` at the empty position.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
    record! { "compactionSummary" "CompactionSummaryMessage" "The summary of the older part of the context." {
        summary Shape::Text, required, "The text of the summary.";
        tokensBefore Shape::Number, optional, "The estimated number of tokens of the context before the compaction.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
    record! { "system" "SystemMessage" "Instructions for the model." {
        content Shape::TextOrBlocks, required, "The instructions.";
        sections Shape::Any, optional, "The parts of the instructions.";
        toolsAdded Shape::Any, optional, "The tools that the model has from then on.";
        timestamp Shape::Time, optional, "When the message was sent, in Unix milliseconds.";
    }},
];

/// The blocks of content with a known type.
pub const BLOCKS: &[Record] = &[
    record! { "text" "TextBlock" "A piece of text." {
        text Shape::Text, required, "The text.";
    }},
    record! { "thinking" "ThinkingBlock" "A piece of the model's thinking." {
        thinking Shape::Text, required, "The text.";
    }},
    record! { "image" "ImageBlock" "An image." {
        data Shape::Text, required, "The bytes, as base64.";
        mimeType Shape::Text, required, "The media type, such as `image/png`.";
    }},
    record! { "toolCall" "ToolCallBlock" "A call of a tool." {
        id Shape::Text, required, "The id of the call, unique in the conversation.";
        name Shape::Text, required, "The name of the tool.";
        arguments Shape::Any, optional, "The arguments of the call, usually an object.";
    }},
];

/// The tokens that a model used.
pub const USAGE: Record = record! { "" "Usage" "The tokens that a model used, and their cost." {
    input Shape::Number, optional, "Tokens sent, without those from the cache.";
    output Shape::Number, optional, "Tokens received.";
    cacheRead Shape::Number, optional, "Tokens read from the cache.";
    cacheWrite Shape::Number, optional, "Tokens written to the cache.";
    totalTokens Shape::Number, optional, "The number of all tokens.";
    cost Shape::Object(&COST), optional, "The cost in dollars.";
}};

/// The cost of these tokens.
pub(crate) const COST: Record = record! { "" "Cost" "A cost in dollars." {
    input Shape::Number, optional, "The cost of the tokens sent.";
    output Shape::Number, optional, "The cost of the tokens received.";
    cacheRead Shape::Number, optional, "The cost of the tokens read from the cache.";
    cacheWrite Shape::Number, optional, "The cost of the tokens written to the cache.";
    total Shape::Number, optional, "The total cost.";
}};

/// A fault of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeFault {
    /// The path of the member.
    pub member: String,
    /// The fault, and what is accepted instead.
    pub reason: String,
}

/// Checks a message. It must have a role; a message with a known role must have the members of that role. A role that
/// is similar to a known role is refused as mistyped. Any other role is the client's own.
pub fn check_message(message: &[u8]) -> Result<(), ShapeFault> {
    let fault = |member: &str, reason: &str| ShapeFault {
        member: member.to_owned(),
        reason: format!("{reason}; accepted messages: {}", accepted_messages()),
    };
    let at = json::skip_space(message, 0);
    let found = FoundMembers::walk(message, at, "role", ROLES);
    let (found, _) = found.map_err(|_| fault("", "must be an object"))?;
    let role = found.get("role").and_then(json::string);
    let role = role.ok_or_else(|| fault("role", "must be a string"))?;
    match ROLES.iter().find(|record| record.tag == role) {
        Some(record) => found
            .check(record)
            .map_err(|ShapeFault { member, reason }| fault(&member, &reason)),
        // A message with a mistyped role would be in the file, but no model would ever see it.
        None => match suggest::nearest(&role, ROLES.iter().map(|record| record.tag)) {
            Some(meant) => Err(fault(
                "role",
                &format!("{role:?} is unknown; did you mean {meant:?}?"),
            )),
            None => Ok(()),
        },
    }
}

/// Checks a value by its shape. The `member` of the fault is the path below the value.
pub fn check(shape: Shape, value: &[u8]) -> Result<(), ShapeFault> {
    let fault = |reason: String| ShapeFault {
        member: String::new(),
        reason,
    };
    let is_as_wanted = match shape {
        Shape::Any => true,
        Shape::Text => is_text(value),
        Shape::Number => is_number(value),
        Shape::Flag => matches!(value, b"true" | b"false"),
        Shape::Time => is_number(value) || is_text(value),
        Shape::TextOrBlocks if is_text(value) => true,
        Shape::Blocks | Shape::TextOrBlocks => return check_blocks(shape, value).map_err(fault),
        Shape::Object(record) => {
            return match FoundMembers::walk(value, 0, "", std::slice::from_ref(record)) {
                Ok((found, _)) => found.check(record),
                Err(_) => Err(fault("must be an object".into())),
            };
        }
    };
    match is_as_wanted {
        true => Ok(()),
        false => Err(fault(format!("must be {}", accepted(shape)))),
    }
}

/// Checks that each element of an array is an object with a type, and checks the members of objects of known types.
fn check_blocks(shape: Shape, value: &[u8]) -> Result<(), String> {
    let wrong = || format!("must be {}", accepted(shape));
    let mut elements = Elements::open(value, 0).map_err(|_| wrong())?;
    while let Some(at) = elements.next_at().map_err(|_| wrong())? {
        let (found, end) = FoundMembers::walk(value, at, "type", BLOCKS).map_err(|_| wrong())?;
        elements.resume(end);
        let kind = found.get("type").and_then(json::string);
        let kind = kind.ok_or_else(wrong)?;
        if let Some(record) = BLOCKS.iter().find(|record| record.tag == kind) {
            found
                .check(record)
                .map_err(|ShapeFault { member, reason }| {
                    format!("has a {kind} block whose {member} {reason}; {}", wrong())
                })?;
        }
    }
    Ok(())
}

/// The members of an object that are in the table. Of duplicate members, the last one counts.
struct FoundMembers<'a>(Vec<(&'static str, &'a [u8])>);

impl<'a> FoundMembers<'a> {
    /// Reads the object at `at` in one walk; returns the position after it.
    fn walk(
        text: &'a [u8],
        at: usize,
        tag: &'static str,
        records: &'static [Record],
    ) -> Result<(Self, usize), Malformed> {
        let mut found: Vec<(&'static str, &[u8])> = Vec::new();
        let mut members = Members::open(text, at)?;
        while let Some(member) = members.next_member()? {
            let key = member.name(text);
            let known = records.iter().flat_map(|record| record.members);
            let mut names = std::iter::once(tag).chain(known.map(|member| member.name));
            let Some(name) = names.find(|name| name.as_bytes() == &*key) else {
                continue;
            };
            let value = part(text, member.value);
            match found.iter_mut().find(|(other, _)| *other == name) {
                Some((_, earlier)) => *earlier = value,
                None => found.push((name, value)),
            }
        }
        Ok((Self(found), members.end()))
    }

    fn get(&self, name: &str) -> Option<&'a [u8]> {
        let named = self.0.iter().find(|(other, _)| *other == name);
        named.map(|(_, value)| *value)
    }

    fn check(&self, record: &Record) -> Result<(), ShapeFault> {
        for member in record.members {
            let fault = |fault: ShapeFault| ShapeFault {
                member: match fault.member.as_str() {
                    "" => member.name.to_owned(),
                    below => format!("{}.{below}", member.name),
                },
                reason: fault.reason,
            };
            match self.get(member.name) {
                None | Some(b"null") if !member.is_required => {}
                Some(value) => check(member.shape, value).map_err(fault)?,
                None => {
                    return Err(fault(ShapeFault {
                        member: String::new(),
                        reason: format!("is missing: it must be {}", accepted(member.shape)),
                    }));
                }
            }
        }
        Ok(())
    }
}

fn is_text(value: &[u8]) -> bool {
    value.starts_with(b"\"")
}

fn is_number(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'-' | b'0'..=b'9'))
}

/// The values that a shape accepts, in words.
fn accepted(shape: Shape) -> String {
    match shape {
        Shape::Text => "a string".into(),
        Shape::Number => "a number".into(),
        Shape::Flag => "true or false".into(),
        Shape::Time => "a number or a string".into(),
        Shape::Any => "any value".into(),
        Shape::Object(_) => "an object".into(),
        Shape::Blocks => format!("an array of content blocks: {}", accepted_blocks()),
        Shape::TextOrBlocks => format!("a string, or {}", accepted(Shape::Blocks)),
    }
}

fn accepted_blocks() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| listed("type", BLOCKS))
}

fn accepted_messages() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| listed("role", ROLES))
}

/// All records with their required members, in the notation of TypeScript.
fn listed(tag: &str, records: &[Record]) -> String {
    let mut text = String::new();
    for record in records {
        let _ = write!(text, "{{{tag}: {:?}", record.tag);
        for member in record.members.iter().filter(|member| member.is_required) {
            let shape = match member.shape {
                Shape::Text => "string",
                Shape::Blocks => "blocks",
                Shape::TextOrBlocks => "string | blocks",
                _ => "…",
            };
            let _ = write!(text, ", {}: {shape}", member.name);
        }
        text.push_str("}, ");
    }
    let _ = write!(text, "or an object with any other {tag}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(message: &str, member: &str) -> String {
        let fault = check_message(message.as_bytes()).expect_err(message);
        assert_eq!(fault.member, member, "{message}: {}", fault.reason);
        fault.reason
    }

    /// A refusal names every accepted message, and for content every accepted block. It once named only one member, and
    /// clients had to guess the others.
    #[test]
    fn a_refusal_names_every_accepted_shape() {
        for message in [
            r#"{"role":"user","content":5}"#,
            r#"{"role":"assistant","content":"x"}"#,
        ] {
            let reason = refused(message, "content");
            for record in ROLES.iter().chain(BLOCKS) {
                assert!(reason.contains(&format!("{:?}", record.tag)), "{reason}");
            }
        }
        let reason = refused("{}", "role");
        for record in ROLES {
            assert!(
                reason.contains(&format!("role: {:?}", record.tag)),
                "{reason}"
            );
        }
        assert!(reason.contains("any other role"), "{reason}");
    }

    #[test]
    fn a_known_member_of_another_type_is_refused_by_its_path() {
        refused("7", "");
        refused(r#"{"role":null}"#, "role");
        refused(r#"{"role":"user"}"#, "content");
        refused(r#"{"role":"user","content":null}"#, "content");
        refused(r#"{"role":"toolResult","content":[]}"#, "toolCallId");
        refused(
            r#"{"role":"toolResult","content":[],"toolCallId":"c","isError":"no"}"#,
            "isError",
        );
        let usage = r#"{"role":"assistant","content":[],"usage":{"cost":{"total":"1"}}}"#;
        refused(usage, "usage.cost.total");
        let reason = refused(
            r#"{"role":"user","content":[{"type":"image","data":"x"}]}"#,
            "content",
        );
        assert!(
            reason.contains("image block whose mimeType is missing"),
            "{reason}"
        );
    }

    #[test]
    fn unknown_roles_blocks_and_members_are_accepted() {
        for message in [
            r#"{"role":"narrator"}"#,
            r#"{"role":"user","content":"x","mood":[1]}"#,
            r#"{"role":"user","content":[{"type":"video"}]}"#,
            r#"{"role":"assistant","content":[],"usage":null,"stopReason":null}"#,
            r#"{"content":5,"content":"the last one counts","role":"user"}"#,
        ] {
            assert_eq!(check_message(message.as_bytes()), Ok(()), "{message}");
        }
    }
}
