//! Finds the known words that are near to a word of a question that no entry has. Two words are near if few letters
//! differ.

use super::counted::CountedFile;
use super::counts::Counts;
use super::glued::{self, Parts};
use super::inside::Holders;
use super::kept::KeptCounts;
use super::request::AskRequest;
use super::segments::{Row, Segments};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use treelined_core::error::{Error, Result};
use treelined_core::search::ask::{MistypedWord, TermCount, letter};
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};

/// The comparison ends after this number of bytes of known words.
const MOST_BYTES: usize = 64 << 20;
/// The most known words that are proposed for one word of the question.
const MOST: usize = 3;

/// A word that no entry has, and known words near to it, the nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearWords {
    pub word: String,
    pub near: Vec<String>,
    /// The word of `near` that replaces the unknown word.
    pub taken: Option<String>,
    /// The known words that count instead of `word`, because `word` is a part of them.
    pub(super) inside: Vec<String>,
    /// The index of the word's term in the question.
    pub(super) term: usize,
}

/// The sources of known words.
pub(super) struct KnownWords<'k> {
    pub cache: Option<&'k Cache>,
    pub segments: &'k Segments,
    pub files: &'k [(Location, Status)],
    /// The sessions whose words count.
    pub counted: &'k [CountedFile],
    /// The counts that were read for this question, by the numbers of their files.
    pub read: &'k HashMap<usize, Counts>,
}

/// A word of a question that no entry has, and the known words near to it.
struct NearOnes<'q> {
    word: MistypedWord<'q>,
    /// Each known word with its distance and the number of sessions that have it.
    near: BTreeMap<String, (usize, usize)>,
    parts: Parts,
    holders: Holders,
}

impl<'q> NearOnes<'q> {
    fn new(word: MistypedWord<'q>) -> Self {
        Self {
            word,
            near: BTreeMap::new(),
            parts: Parts::default(),
            holders: Holders::default(),
        }
    }
}

/// Compares known words, one on each line, with each of `ones`. `sessions` returns how many sessions have the word on a
/// line.
fn compare(ones: &mut [NearOnes<'_>], known: &[u8], sessions: impl Fn(usize) -> usize) {
    let (mut line, mut start, mut letters) = (0, 0, 0);
    // One pass over the bytes, since a question without an answer looks at the words of all sessions.
    for (at, byte) in known.iter().enumerate() {
        if *byte != b'\n' {
            letters |= letter(*byte);
            continue;
        }
        for one in &mut *ones {
            let word = one.word;
            let may_be_near = word.may_be_near(at - start, letters);
            let may_be_part = word.may_have_part(at - start, letters);
            let may_be_inside = word.may_be_inside(at - start, letters);
            if !may_be_near && !may_be_part && !may_be_inside {
                continue;
            }
            let Some(Ok(known)) = known.get(start..at).map(std::str::from_utf8) else {
                continue;
            };
            // The known words also have the values of filters.
            if known.contains(':') {
                continue;
            }
            if may_be_part {
                one.parts.note(word.text(), known, || sessions(line));
            }
            if may_be_inside {
                one.holders.note(word.text(), known, || sessions(line));
            }
            if may_be_near && let Some(distance) = word.distance(known) {
                let near = one.near.entry(known.to_owned());
                near.or_insert((distance, 0)).1 += sessions(line);
            }
        }
        (line, start, letters) = (line + 1, at + 1, 0);
    }
}

/// The known words near to each word of the question that no entry has, and the known words that have it as a part.
/// Leaves out a word of the question without such known words. Fails with `cancelled`.
pub(super) fn near_words(
    request: &AskRequest,
    counts: &[TermCount],
    known: &KnownWords<'_>,
    cancel: &Cancel,
) -> Result<Vec<NearWords>> {
    let question = &request.question;
    let terms = question.terms().iter().zip(counts).enumerate();
    let missing = terms.filter(|(_, (term, count))| term.is_word && count.entries == 0);
    let words = missing.map(|(number, (term, _))| (number, question.word(term.word)));
    let words: Vec<(usize, &str)> = words.collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let ones = words
        .iter()
        .map(|(_, word)| NearOnes::new(MistypedWord::new(word)));
    let mut ones: Vec<NearOnes<'_>> = ones.collect();
    of_all(known, &mut ones, cancel)?;
    let pairs = pairs(&ones, known, cancel)?;
    let words = words.into_iter().zip(ones).zip(pairs);
    let proposed = words.map(|(((term, word), ones), pair)| {
        let mut proposed = proposed(term, word, ones);
        if let Some(pair) = pair.filter(|_| proposed.taken.is_none()) {
            proposed.near.insert(0, pair.clone());
            proposed.near.truncate(MOST);
            proposed.taken = Some(pair);
        }
        proposed
    });
    let is_known = |words: &NearWords| !words.near.is_empty() || !words.inside.is_empty();
    Ok(proposed.filter(is_known).collect())
}

/// For each word without near words: the two known words that it consists of, or a known word and a word that is near
/// to the rest.
fn pairs(
    ones: &[NearOnes<'_>],
    known: &KnownWords<'_>,
    cancel: &Cancel,
) -> Result<Vec<Option<String>>> {
    let (mut pairs, mut rests) = (Vec::new(), Vec::new());
    for (number, one) in ones.iter().enumerate() {
        let NearOnes {
            word, near, parts, ..
        } = one;
        let has_digit = word.text().bytes().any(|byte| byte.is_ascii_digit());
        let is_lone = !has_digit && !near.keys().any(|known| word.begins_as(known));
        let pair = parts.pair(word.text()).filter(|_| is_lone);
        if is_lone && pair.is_none() {
            rests.extend(glued::rests(number, word.text(), parts));
        }
        pairs.push(pair);
    }
    if rests.is_empty() {
        return Ok(pairs);
    }
    let of_rests = rests.iter().map(|rest| NearOnes::new(rest.mistyped()));
    let mut of_rests: Vec<_> = of_rests.collect();
    of_all(known, &mut of_rests, cancel)?;
    let mut best = vec![usize::MAX; pairs.len()];
    for (rest, found) in rests.iter().zip(&of_rests) {
        let (Some(pair), Some(best)) = (pairs.get_mut(rest.of), best.get_mut(rest.of)) else {
            continue;
        };
        if let Some((distance, found)) = rest.pair(&found.near)
            && distance < *best
        {
            (*best, *pair) = (distance, Some(found));
        }
    }
    Ok(pairs)
}

/// Compares the words of all sessions.
fn of_all(known: &KnownWords<'_>, ones: &mut [NearOnes<'_>], cancel: &Cancel) -> Result<()> {
    of_segments(known, ones, cancel)?;
    of_own_files(known, ones, cancel)
}

/// The proposals for a word, the nearest first. Equally near words are in this order: words that begin with the same
/// letter, words that have the same letters, words that most sessions have. If known words begin with the word, it is
/// short for them and not mistyped.
fn proposed(
    term: usize,
    word: &str,
    NearOnes {
        word: mistyped,
        near,
        holders,
        ..
    }: NearOnes<'_>,
) -> NearWords {
    let is_short = holders.begin_with(word);
    let nearest = near.values().map(|(distance, _)| *distance).min();
    let mut near: Vec<_> = near.into_iter().collect();
    near.sort_by_cached_key(|(known, (distance, sessions))| {
        let is_like = (mistyped.begins_as(known), mistyped.has_letters_of(known));
        (
            *distance,
            Reverse(is_like),
            Reverse(*sessions),
            known.clone(),
        )
    });
    let near: Vec<String> = near.into_iter().take(MOST).map(|(word, _)| word).collect();
    let first = near.first().zip(nearest).filter(|_| !is_short);
    let taken = first.filter(|(first, distance)| mistyped.is_surely(first, *distance));
    let taken = taken.map(|(first, _)| first.clone());
    NearWords {
        inside: match taken {
            Some(_) => Vec::new(),
            None => holders.best(word),
        },
        taken,
        word: word.to_owned(),
        near,
        term,
    }
}

/// Compares the words of the sessions in segments. A word is compared once for all sessions of a segment.
fn of_segments(known: &KnownWords<'_>, ones: &mut [NearOnes<'_>], cancel: &Cancel) -> Result<()> {
    let rows = known.counted.iter().filter_map(|file| file.row);
    let rows: HashSet<Row> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let mut bytes = 0;
    for (segment, read, words) in known.segments.words() {
        if cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let of_words = OnceCell::new();
        compare(ones, &words, |number| {
            let of_words = of_words.get_or_init(|| read.sessions_of_words());
            let sessions = of_words.as_ref().and_then(|all| all.of(number));
            let is_counted = |session: &u32| {
                let session = *session;
                rows.contains(&Row { segment, session })
            };
            let sessions = sessions.unwrap_or_default();
            sessions.iter().filter(|one| is_counted(one)).count()
        });
        bytes += words.len();
        if bytes > MOST_BYTES {
            break;
        }
    }
    // A word is proposed only if one of the counted sessions has it.
    for one in ones {
        one.near.retain(|_, (_, sessions)| *sessions > 0);
        one.parts.forget_unused();
        one.holders.forget_unused();
    }
    Ok(())
}

/// Compares the words of the other sessions.
fn of_own_files(known: &KnownWords<'_>, ones: &mut [NearOnes<'_>], cancel: &Cancel) -> Result<()> {
    let mut bytes = 0;
    for file in known.counted.iter().filter(|file| file.row.is_none()) {
        if cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        if let Some(read) = known.read.get(&file.number) {
            for word in &read.vocabulary {
                compare(ones, format!("{word}\n").as_bytes(), |_| 1);
            }
            continue;
        }
        let status = known.files.get(file.number).map(|(_, status)| *status);
        let kept = status
            .zip(known.cache)
            .and_then(|(status, cache)| KeptCounts::open(cache, status));
        let words = kept.and_then(|kept| kept.vocabulary()).unwrap_or_default();
        bytes += words.len();
        compare(ones, &words, |_| 1);
        if bytes > MOST_BYTES {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::request;
    use treelined_core::search::Mode;
    use treelined_core::search::ask::{Corpus, Question};

    /// A question of 64 unknown words once compared 64 MiB of known words with each of them, and could not be
    /// cancelled.
    #[test]
    fn a_search_for_near_words_can_be_cancelled() {
        let request = AskRequest {
            question: Question::parse("shceduler").unwrap(),
            filters: request("x", Mode::Words).into(),
            phrases: None,
            read_time: None,
        };
        let read = Counts {
            vocabulary: ["scheduler".into()].into(),
            ..Counts::default()
        };
        let (cancel, files) = (Cancel::new(), [CountedFile::without(0, Corpus::default())]);
        let counts = [TermCount::default()];
        let known = KnownWords {
            cache: None,
            segments: &Segments::default(),
            files: &[],
            counted: &files,
            read: &HashMap::from([(0, read)]),
        };
        let near = || near_words(&request, &counts, &known, &cancel);
        assert_eq!(near().unwrap()[0].near, ["scheduler"]);
        assert_eq!(near().unwrap()[0].taken.as_deref(), Some("scheduler"));
        cancel.cancel();
        assert!(near().is_err());
    }

    /// Few people mistype the first letter: `jest` is not a mistyped `test`.
    #[test]
    fn a_word_that_begins_otherwise_is_proposed_and_not_taken() {
        let proposed = |word: &str, known: &[(&str, usize)]| {
            let mistyped = MistypedWord::new(word);
            let near = known.iter().filter_map(|(known, sessions)| {
                Some(((*known).to_owned(), (mistyped.distance(known)?, *sessions)))
            });
            let near = near.collect();
            let ones = NearOnes::new(mistyped);
            super::proposed(0, word, NearOnes { near, ..ones })
        };
        let jest = proposed("jest", &[("test", 9), ("jets", 1), ("best", 8)]);
        assert_eq!(jest.near, ["jets", "test", "best"]);
        assert_eq!(jest.taken.as_deref(), Some("jets"));
        let jest = proposed("jest", &[("test", 9)]);
        assert_eq!((jest.near.len(), jest.taken), (1, None));
        let cask = proposed("caks", &[("cats", 9), ("cask", 2), ("casks", 1)]);
        assert_eq!(cask.near, ["cask", "casks", "cats"]);
        // `race` was once replaced by `rate`, and `restart` by `restore`, although some letters were equal only by
        // chance.
        let race = proposed("race", &[("rate", 9)]);
        assert_eq!((race.near.len(), race.taken), (1, None));
        let restart = proposed("restart", &[("restore", 9)]);
        assert_eq!((restart.near.len(), restart.taken), (1, None));
        let long = proposed("authentification", &[("authentication", 1)]);
        assert_eq!(long.taken.as_deref(), Some("authentication"));
    }

    /// `perf` was once replaced by `perl`, although sessions had `performance`.
    #[test]
    fn a_word_with_which_others_begin_is_short_for_them() {
        let (mut ones, sessions) = ([NearOnes::new(MistypedWord::new("perf"))], |_: usize| 1);
        compare(&mut ones, b"perl\nperformance\nimperfect\n", sessions);
        let [ones] = ones;
        let perf = super::proposed(0, "perf", ones);
        assert_eq!((&*perf.near, perf.taken), (&["perl".to_owned()][..], None));
        assert_eq!(perf.inside, ["performance", "imperfect"]);
    }
}
