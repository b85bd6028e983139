//! The page of `clients/web`, which is built into the program, and the policy under which browsers run it.
//!
//! The style and the script of the page are from this program only. The policy names both by their hashes, so
//! that a browser does not run code from the text of a session.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The content of the element `<style>`: ASCII without `</style`.
pub const STYLE: &str = include_str!("page.css");
/// The content of the element `<script>`: ASCII without `</script`.
pub const SCRIPT: &str = include_str!("page.js");

/// The content security policy of a document that has this style and this script, and makes no requests.
pub fn policy() -> String {
    format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types treelined",
        source_hash(SCRIPT),
        source_hash(STYLE)
    )
}

/// A hash source for the policy: `sha256-` and the Base64 of the digest of `content`.
fn source_hash(content: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_source_is_that_of_the_specification() {
        // The example of CSP Level 3, section 2.3.1.
        assert_eq!(
            source_hash("alert('Hello, world.');"),
            "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
        );
    }

    #[test]
    fn style_and_script_cannot_end_their_elements() {
        for content in [STYLE, SCRIPT] {
            // Another encoding would change the hash.
            assert!(content.is_ascii());
            let content = content.to_ascii_lowercase();
            // A comment or another script would change the state of the parser.
            for end in ["</style", "</script", "<!--", "<script"] {
                assert!(!content.contains(end), "{end}");
            }
        }
    }

    #[test]
    fn the_policy_allows_own_script_and_style_and_images_in_the_document() {
        let policy = policy();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
        assert_eq!(policy.matches("sha256-").count(), 2);
        for word in ["unsafe", "http", "*"] {
            assert!(!policy.contains(word), "{policy}");
        }
    }
}
