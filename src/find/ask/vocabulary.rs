//! The known words that are near to words which no entry has.

use super::counted::CountedFile;
use super::gather::Gathered;
use super::kept::KeptCounts;
use super::request::AskRequest;
use std::collections::BTreeMap;
use treelined_core::error::{Error, Result};
use treelined_core::search::ask::near_words as distance;
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};

/// The bytes of known words that are compared.
const MOST_BYTES: usize = 64 << 20;
/// The most words that are proposed for one.
const MOST: usize = 3;

/// A word that no entry has, and known words near to it, the nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearWords {
    pub word: String,
    pub near: Vec<String>,
}

/// The near words of each word of the question that no entry has, if there are any. Fails with `cancelled`.
pub(super) fn near_words(
    request: &AskRequest,
    gathered: &Gathered,
    cache: Option<&Cache>,
    files: &[(Location, Status)],
    counted: &[CountedFile],
    cancel: &Cancel,
) -> Result<Vec<NearWords>> {
    let question = &request.question;
    let terms = question.terms().iter().zip(&gathered.counts);
    let missing = terms.filter(|(term, count)| term.is_word && count.entries == 0);
    let words: Vec<&str> = missing.map(|(term, _)| question.word(term.word)).collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    // By word the distance and the number of sessions of each near one.
    let mut near: Vec<BTreeMap<String, (usize, usize)>> = vec![BTreeMap::new(); words.len()];
    let mut see = |known: &str| {
        for (word, near) in words.iter().zip(&mut near) {
            if let Some(distance) = distance(word, known) {
                near.entry(known.to_owned()).or_insert((distance, 0)).1 += 1;
            }
        }
    };
    let mut bytes = 0;
    for file in counted {
        if cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        if let Some(read) = &file.read {
            read.vocabulary.iter().for_each(|word| see(word));
            continue;
        }
        let status = files.get(file.number).map(|(_, status)| *status);
        let kept = status
            .zip(cache)
            .and_then(|(status, cache)| KeptCounts::open(cache, status));
        let known = kept.and_then(|kept| kept.vocabulary()).unwrap_or_default();
        bytes += known.len();
        for word in known.split(|byte| *byte == b'\n') {
            std::str::from_utf8(word).into_iter().for_each(&mut see);
        }
        if bytes > MOST_BYTES {
            break;
        }
    }
    let words = words.into_iter().zip(near);
    let words = words.filter(|(_, near)| !near.is_empty());
    let proposed = words.map(|(word, near)| {
        let mut near: Vec<_> = near.into_iter().collect();
        near.sort_by(|(one, (d1, n1)), (other, (d2, n2))| (d1, n2, one).cmp(&(d2, n1, other)));
        NearWords {
            word: word.to_owned(),
            near: near.into_iter().take(MOST).map(|(word, _)| word).collect(),
        }
    });
    Ok(proposed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::counts::Counts;
    use crate::tests::request;
    use treelined_core::search::Mode;
    use treelined_core::search::ask::{Corpus, Question, TermCount};

    /// A question of 64 unknown words compared 64 MiB of known ones with each of them, and nobody could end it.
    #[test]
    fn a_search_for_near_words_can_be_cancelled() {
        let request = AskRequest {
            question: Question::parse("shceduler").unwrap().unwrap(),
            filters: request("x", Mode::Words),
        };
        let mut file = CountedFile::of(0, &Counts::default(), &request.filters, &[], &[]);
        file.read = Some(Counts {
            vocabulary: ["scheduler".to_owned()].into(),
            ..Counts::default()
        });
        let gathered = Gathered {
            candidates: Vec::new(),
            corpus: Corpus::default(),
            counts: vec![TermCount::default()],
            entries: 0,
            sessions: 0,
            of_file: vec![0],
        };
        let (cancel, files) = (Cancel::new(), [file]);
        let near = || near_words(&request, &gathered, None, &[], &files, &cancel);
        assert_eq!(near().unwrap()[0].near, ["scheduler"]);
        cancel.cancel();
        assert!(near().is_err());
    }
}
